"""The style sheet of a report: light and dark by the reader's choice, and for paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f5f1; --card: #ffffff; --ink: #1d2320; --soft: #56605a; --faint: #8a938d;
  --rule: #dfe1da; --accent: #1f6f54; --accent-soft: #1f6f5422; --band: #1f6f5430;
  --warm: #b3541e; --bad: #a3261c; --bad-soft: #fbe9e6; --track: #e9eae4;
  --s1: #1f6f54; --s2: #6aa68d; --s3: #c9a227; --s4: #8a6fae; --s5: #b3541e; --s6: #4f7fa8;
  --s7: #d3d6cd;
  --c1: #1f6f54; --c2: #c9a227; --c3: #4f7fa8; --c4: #b3541e; --c5: #8a6fae; --c6: #c2577f;
  --c7: #3b3f8f; --c8: #7a8b1f; --c9: #17a2a2; --c10: #6b4a33;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14181a; --card: #1c2123; --ink: #e9ece8; --soft: #a9b2ac; --faint: #7d877f;
    --rule: #323a3b; --accent: #6fcaa4; --accent-soft: #6fcaa422; --band: #6fcaa438;
    --warm: #e79a62; --bad: #ff9d8f; --bad-soft: #3a2220; --track: #2a3132;
    --s1: #6fcaa4; --s2: #3f8f72; --s3: #dcc064; --s4: #b39ad8; --s5: #e79a62; --s6: #83b4dd;
    --s7: #3d4647;
    --c1: #6fcaa4; --c2: #dcc064; --c3: #83b4dd; --c4: #e79a62; --c5: #b39ad8; --c6: #e88fb0;
    --c7: #8f95e8; --c8: #b4c455; --c9: #54cfcf; --c10: #c19a7e;
  }
}
* { box-sizing: border-box; }
html { font-size: 16px; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums;
}
main { max-width: 66rem; margin: 0 auto; padding: 3.5rem 1.5rem 5rem; }
header { margin-bottom: 2.5rem; }
.over {
  margin: 0 0 .5rem; color: var(--accent); font-size: .8125rem; font-weight: 650;
  letter-spacing: .09em; text-transform: uppercase;
}
h1 { margin: 0; font-size: 2.375rem; line-height: 1.15; letter-spacing: -.02em; font-weight: 680; }
h1 + p { max-width: 44rem; margin: .75rem 0 0; color: var(--soft); font-size: 1.0625rem; }
section { margin-top: 3.5rem; }
h2 { margin: 0 0 .35rem; font-size: 1.375rem; letter-spacing: -.01em; font-weight: 660; }
h2 + p.lead { max-width: 46rem; margin: 0 0 1.25rem; color: var(--soft); }
h3 { margin: 0; font-size: 1rem; font-weight: 640; }
.card {
  background: var(--card); border: 1px solid var(--rule); border-radius: .75rem; padding: 1.25rem;
}
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .75rem; }
.tile { padding: .875rem 1rem; }
.tile b { display: block; font-size: 1.4375rem; line-height: 1.25; font-weight: 640;
  letter-spacing: -.015em; }
.tile span { color: var(--soft); font-size: .875rem; }
.tile small { display: block; color: var(--soft); font-size: .8125rem; line-height: 1.35; }
.promise { border-left: .25rem solid var(--accent); }
.promise.none { border-left-color: var(--bad); background: var(--bad-soft); }
.promise.none p:first-child { color: var(--bad); font-weight: 640; }
.alarm { margin: 1.25rem 0 0; padding: .75rem 1.25rem; border: 2px solid var(--bad);
  border-radius: .75rem; background: var(--bad-soft); color: var(--bad); font-size: 1.125rem; }
.alarm b { letter-spacing: .04em; }
.wide { grid-column: span 2; }
.full { grid-column: 1 / -1; }
.promise p { max-width: 50rem; margin: 0 0 .75rem; }
.promise p:first-child { font-size: 1.0625rem; }
.promise p:not(:first-child) { color: var(--soft); font-size: .9375rem; }
.promise p:last-child { margin-bottom: 0; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(19rem, 1fr)); gap: 1rem; }
figure { margin: 0; padding: 1rem 1.125rem .75rem; min-width: 0; }
figcaption {
  display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 .75rem;
  align-items: baseline; margin-bottom: .375rem; font-weight: 620; overflow-wrap: break-word;
}
figcaption span { min-width: 0; overflow-wrap: anywhere; }
figcaption small { color: var(--soft); font-weight: 400; font-size: .8125rem; white-space: nowrap; }
.mark {
  display: inline-block; margin-left: .4rem; padding: 0 .45rem; border-radius: 1rem;
  background: var(--accent-soft); color: var(--accent); font-size: .75rem; font-weight: 600;
}
.mark.hand { color: var(--warm); }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { fill: var(--soft); font-size: 12px; font-family: inherit; }
svg .strong { fill: var(--ink); }
.axis { stroke: var(--rule); stroke-width: 1; }
.zero { stroke: var(--faint); stroke-width: 1; stroke-dasharray: 2 3; }
.line { fill: none; stroke: var(--accent); stroke-width: 2; stroke-linejoin: round; }
.band { fill: var(--band); stroke: none; }
.whisker { stroke: var(--band); stroke-width: 8; stroke-linecap: round; }
.whisker.thin { stroke-width: 4; }
.dot { fill: var(--accent); }
.dot.hand { fill: var(--warm); }
.rows { fill: var(--rule); }
.importances { display: grid; grid-template-columns: minmax(4rem, auto) 1fr auto;
  gap: .3rem .75rem; align-items: center; font-size: .8125rem; line-height: 1.3; }
.importances > span:nth-child(3n + 1) { max-width: 16rem; text-align: right;
  overflow-wrap: anywhere; }
.importances .value { color: var(--soft); text-align: right; }
.bars { position: relative; height: 1.125rem; }
.bar { position: absolute; left: 0; top: .125rem; height: .875rem; border-radius: .125rem;
  background: var(--accent); }
.bar.pair { background: var(--s6); }
.noise { position: absolute; top: 0; width: 2px; height: 1.125rem; background: var(--ink); }
.stack { display: flex; height: 1.75rem; border-radius: .5rem; overflow: hidden; }
.stack span { display: block; min-width: 2px; border-right: 2px solid var(--card); }
.stack span:last-child { border-right: 0; }
table { width: 100%; border-collapse: collapse; font-size: .9375rem; }
th, td { padding: .4rem .75rem .4rem 0; text-align: left; vertical-align: top; }
th { color: var(--soft); font-weight: 550; font-size: .8125rem; }
tbody tr { border-top: 1px solid var(--rule); }
td.number, th.number { text-align: right; white-space: nowrap; }
td:last-child, th:last-child { padding-right: 0; }
.key { display: inline-block; width: .75rem; height: .75rem; border-radius: .2rem;
  margin-right: .5rem; vertical-align: -.05rem; }
.legend { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin: 0 0 1rem; font-size: .875rem;
  color: var(--soft); }
.scroll { overflow-x: auto; }
.scroll svg, .scroll img { width: auto; max-width: none; }
.picture { background: #fff; border-radius: .5rem; display: block; }
.below { margin: .25rem 0 0; color: var(--soft); font-size: .8125rem; }
.hint, .notes li { color: var(--soft); font-size: .9375rem; }
.notes { margin: 1.25rem 0 0; padding-left: 1.1rem; max-width: 50rem; }
details { margin-top: .5rem; font-size: .875rem; }
summary { cursor: pointer; color: var(--soft); }
summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
details table { font-size: .8125rem; }
code { font: .875em/1.4 ui-monospace, "SF Mono", Menlo, Consolas, monospace;
  overflow-wrap: anywhere; }
footer { margin-top: 4rem; padding-top: 1rem; border-top: 1px solid var(--rule);
  color: var(--soft); font-size: .8125rem; }
@media (max-width: 40rem) {
  main { padding: 2rem 1rem 3rem; }
  h1 { font-size: 1.75rem; }
  .grid { grid-template-columns: minmax(0, 1fr); }
  .wide { grid-column: auto; }
  .card { padding: 1rem; }
  .scroll table { font-size: .8125rem; }
  th, td { padding-right: .5rem; }
  .importances { grid-template-columns: 1fr auto; }
  .importances > span:nth-child(3n + 1) { grid-column: 1 / -1; max-width: none; text-align: left;
    margin-top: .25rem; }
}
@media print {
  :root {
    --page: #fff; --card: #fff; --ink: #000; --soft: #333; --faint: #666; --rule: #ccc;
    --accent: #14543f; --accent-soft: #14543f18; --band: #14543f30; --warm: #8f3f12;
    --bad: #8a1c13; --bad-soft: #fff; --track: #eee;
    --s1: #14543f; --s2: #6aa68d; --s3: #c9a227; --s4: #8a6fae; --s5: #b3541e; --s6: #4f7fa8;
    --s7: #d3d6cd;
    --c1: #1f6f54; --c2: #c9a227; --c3: #4f7fa8; --c4: #b3541e; --c5: #8a6fae; --c6: #c2577f;
    --c7: #3b3f8f; --c8: #7a8b1f; --c9: #17a2a2; --c10: #6b4a33;
  }
  html { font-size: 12px; }
  main { max-width: none; padding: 0; }
  section { margin-top: 2rem; }
  h2, h3, .lead, .legend, figcaption { break-after: avoid; }
  .lead, .tiles, .hint, .notes li { break-inside: avoid; }
  .card, figure, tr { break-inside: avoid; }
  .grid { grid-template-columns: repeat(3, 1fr); gap: .6rem; }
  figure { padding: .6rem .7rem .4rem; }
  .card { padding: .8rem; }
  details.screen { display: none; }
  details::details-content { content-visibility: visible; display: block; }
  .scroll { overflow: visible; }
  .scroll svg, .scroll img { max-width: 100%; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; }
  @page { margin: 1.6cm; }
  @page picture { size: landscape; }
  .whole { page: picture; }
  .scroll .picture { max-height: 15cm; }
}
"""
