"use strict";
(() => {
  const at = (name) => document.getElementById(name);
  const percent = (share) => (share === null ? "none" : `${(100 * share).toFixed(2)} %`);
  const show = (found) => {
    const { done, total, unit } = found.progress;
    at("run").textContent = found.run;
    const units = total === 1 ? unit.replace(/s$/, "") : unit;
    const counted = total ? `, ${done} of ${total} ${units}` : "";
    const phase = found.phase === found.state ? "" : `, ${found.phase}`;
    const why = found.reason ? `: ${found.reason}` : "";
    at("state").textContent = `${found.state}${phase}${counted}${why}`;
    at("progress").value = total ? done / total : 0;
    const rounds = found.rounds.filter((row) => typeof row.val_accuracy === "number");
    const last = found.rounds[found.rounds.length - 1];
    at("scores").textContent = last
      ? `Validation ${percent(last.val_accuracy)}, test ${percent(last.test_accuracy)}` : "";
    const step = 600 / Math.max(rounds.length - 1, 1);
    const points = rounds.map((row, n) => `${n * step},${155 - 150 * row.val_accuracy}`);
    at("curve").firstElementChild.setAttribute("points", points.join(" "));
    at("rows").replaceChildren(...Object.entries(found.organisations).map(([name, facts]) => {
      const row = document.createElement("tr");
      const seen = facts.last_seen ? new Date(facts.last_seen).toLocaleTimeString() : "never";
      const cells = [name, seen, (facts.bytes_up / 1e6).toFixed(2),
        (facts.bytes_down / 1e6).toFixed(2), facts.retries];
      cells.forEach((text, n) => {
        const cell = document.createElement(n ? "td" : "th");
        cell.textContent = text;
        if (!n) cell.scope = "row";
        row.append(cell);
      });
      return row;
    }));
  };
  const ask = async () => {
    try {
      const answer = await fetch("status.json", { cache: "no-store" });
      if (answer.ok) {
        const found = await answer.json();
        show(found);
        if (found.state !== "running") return;
      }
    } catch (error) { at("state").textContent = "no answer: is `fedlap status --serve` still there?"; }
    setTimeout(ask, 1000);
  };
  ask();
})();
