"use strict";
(() => {
  const charts = new Map();
  const specs = document.querySelectorAll("script[data-spec]");
  const draw = async (script) => {
    const name = script.dataset.spec;
    const spec = JSON.parse(script.textContent);
    const place = document.querySelector(`[data-chart="${name}"]`);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const options = { renderer: "svg", actions: false, ast: true, hover: !still, defaultStyle: false };
    const { view } = await vegaEmbed(place, spec, options);
    // What the drawing shows is said by its title, its sentence and its table.
    place.querySelectorAll("svg").forEach((svg) => svg.setAttribute("aria-hidden", "true"));
    charts.set(name, { view, values: spec.data.values, by: spec.usermeta.by });
  };
  const show = (name) => {
    const { view, values, by } = charts.get(name);
    const boxes = document.querySelectorAll(`input[data-filter="${name}"]`);
    const shown = new Set([...boxes].filter((box) => box.checked).map((box) => box.value));
    const kept = values.filter((row) => shown.has(String(row[by])));
    view.data("source", kept).runAsync();
  };
  document.addEventListener("change", (event) => {
    if (event.target.dataset.filter) show(event.target.dataset.filter);
  });
  // Paper cannot be opened: what is folded is printed, and folded again.
  const opened = [];
  addEventListener("beforeprint", () => {
    opened.push(...document.querySelectorAll("details[data-print]:not([open])"));
    opened.forEach((each) => { each.open = true; });
  });
  addEventListener("afterprint", () => {
    opened.splice(0).forEach((each) => { each.open = false; });
  });
  Promise.all([...specs].map(draw)).then(() => { document.documentElement.dataset.drawn = "yes"; });
})();
