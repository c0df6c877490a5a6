// Search runs in a web worker, which browsers refuse to pages that were opened from a folder.
// For those alone: run the same script in a hidden frame and pass messages by hand.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = frame.contentWindow;
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inner.document.createElement("script");
      const loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      this.postMessage = (data) =>
        loaded.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
      script.src = url;
      inner.document.body.append(script);
    }
    terminate() {}
  };
}
