// A little comfort; every page works without it.
"use strict";
(function () {
  // The code of a one-time link stands behind the # of its address, which no server ever sees.
  var code = document.getElementById("code");
  function fill() {
    if (code && location.hash.length > 1) {
      code.value = location.hash.slice(1);
      history.replaceState(null, "", location.pathname);
      code.form.querySelector("button").focus();
    }
  }
  fill();
  addEventListener("hashchange", fill);
  document.querySelectorAll("[data-copy]").forEach(function (button) {
    button.addEventListener("click", function () {
      var text = document.getElementById(button.dataset.copy).textContent;
      function done() { button.textContent = "Copied"; }
      if (navigator.clipboard) { navigator.clipboard.writeText(text).then(done, select); } else { select(); }
      function select() {
        getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
        button.textContent = "Selected";
      }
    });
  });
  // A form that decides is sent once.
  document.querySelectorAll("form[data-once]").forEach(function (form) {
    form.addEventListener("submit", function (event) {
      if (form.dataset.sent) { event.preventDefault(); }
      form.dataset.sent = "yes";
    });
  });
})();
