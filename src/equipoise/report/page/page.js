(function () {
  "use strict";
  var figures = JSON.parse(document.getElementById("figures").textContent);
  var tabs = Array.prototype.slice.call(document.querySelectorAll("[role=tab]"));
  var sections = Array.prototype.slice.call(document.querySelectorAll("main > section"));

  // Plots are drawn when they first come into view: a hidden element has no width to draw into.
  function draw(root) {
    root.querySelectorAll(".canvas").forEach(function (node) {
      if (node.dataset.drawn || !node.offsetParent) { return; }
      var figure = figures[Number(node.dataset.figure)];
      var layout = Object.assign({}, figure.layout, { autosize: true, height: Number(node.dataset.height) });
      node.dataset.drawn = "1";
      node.style.minHeight = "";
      window.Plotly.newPlot(node, figure.data, layout, {
        responsive: true, displaylogo: false, displayModeBar: false, scrollZoom: false
      });
    });
  }

  function select(index, focus) {
    sections.forEach(function (section, i) { section.hidden = i !== index; });
    tabs.forEach(function (tab, i) {
      tab.setAttribute("aria-selected", i === index ? "true" : "false");
      tab.tabIndex = i === index ? 0 : -1;
    });
    if (tabs[index]) {
      var strip = tabs[index].parentNode;
      strip.scrollLeft = tabs[index].offsetLeft - strip.offsetLeft - 16;
      if (focus) { tabs[index].focus({ preventScroll: true }); }
    }
    draw(sections[index]);
  }

  function fromAddress() {
    var id = decodeURIComponent(window.location.hash.slice(1));
    var index = sections.findIndex(function (section) { return section.id === id; });
    return index < 0 ? 0 : index;
  }

  if (tabs.length) {
    document.body.classList.add("tabbed");
    tabs.forEach(function (tab, index) {
      tab.addEventListener("click", function (event) {
        event.preventDefault();
        try { window.history.replaceState(null, "", "#" + sections[index].id); } catch (error) { /* file:// in some browsers */ }
        select(index, true);
        if (document.querySelector("nav").getBoundingClientRect().top <= 0) {
          window.scrollTo(0, document.querySelector("main").offsetTop - 60);
        }
      });
      tab.addEventListener("keydown", function (event) {
        var step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step) { event.preventDefault(); select((index + step + tabs.length) % tabs.length, true); }
      });
    });
    window.addEventListener("hashchange", function () { select(fromAddress(), false); });
    select(fromAddress(), false);
  } else {
    draw(document);
  }

  document.querySelectorAll("details").forEach(function (node) {
    node.addEventListener("toggle", function () { draw(node); });
  });

  var before = [];
  window.addEventListener("beforeprint", function () {
    before = sections.map(function (section) { return section.hidden; });
    sections.forEach(function (section) { section.hidden = false; });
    document.querySelectorAll("details").forEach(function (node) { node.open = true; });
    draw(document);
  });
  window.addEventListener("afterprint", function () {
    sections.forEach(function (section, i) { section.hidden = before[i]; });
  });
})();
