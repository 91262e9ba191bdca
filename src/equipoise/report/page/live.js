// The operating point: counts at every threshold in, figures and markers out. Twin of report/operating.py.
(() => {
  "use strict";
  const CASES = 10000;
  const house = window.equipoise;

  // Numbers ------------------------------------------------------------------------------------------------

  const LANCZOS = [
    0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
  ];

  function logGamma(x) {
    const t = x + 6.5;
    const sum = LANCZOS.reduce((total, c, i) => (i ? total + c / (x - 1 + i) : c), 0);
    return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
  }

  // The regularized incomplete beta function by its continued fraction (Lentz).
  function betaShare(x, a, b) {
    if (x <= 0) { return 0; }
    if (x >= 1) { return 1; }
    if (x > (a + 1) / (a + b + 2)) { return 1 - betaShare(1 - x, b, a); }
    const front = Math.exp(
      logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
    let c = 1, d = 1 / guard(1 - (a + b) * x / (a + 1)), value = d;
    for (let m = 1; m < 5000; m += 1) {
      const even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 / guard(1 + even * d); c = guard(1 + even / c); value *= c * d;
      const odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
      d = 1 / guard(1 + odd * d); c = guard(1 + odd / c); value *= c * d;
      if (Math.abs(c * d - 1) < 1e-15) { break; }
    }
    return front * value;
  }

  function guard(x) { return Math.abs(x) < 1e-300 ? 1e-300 : x; }

  function betaQuantile(share, a, b) {
    let low = 0, high = 1;
    for (let i = 0; i < 60; i += 1) {
      const middle = (low + high) / 2;
      if (betaShare(middle, a, b) < share) { low = middle; } else { high = middle; }
    }
    return (low + high) / 2;
  }

  function exactInterval(count, total, confidence) {
    const tail = (1 - confidence) / 2;
    return [
      count <= 0 ? 0 : betaQuantile(tail, count, total - count + 1),
      count >= total ? 1 : betaQuantile(1 - tail, count + 1, total - count),
    ];
  }

  function figures(curve, cut, prior, cost) {
    const hits = curve.hits[cut], alarms = curve.alarms[cut], n = curve.positives, m = curve.negatives;
    if (!n || !m) { return {}; }
    const r = hits / n, f = alarms / m;
    const at = (recall, wrong) => {
      const right = prior * recall, bad = (1 - prior) * wrong;
      return {
        alerts: right + bad, precision: right + bad > 0 ? right / (right + bad) : null,
        cost: cost[0] * bad + cost[1] * prior * (1 - recall),
      };
    };
    const [lessF, lessR] = curve.effects;  // rows that belong together count as fewer
    const share = (count, total, less, confidence) => exactInterval(count / less, total / less, confidence);
    const [rLow, rHigh] = share(hits, n, lessR, 0.95), [fLow, fHigh] = share(alarms, m, lessF, 0.95);
    const wideR = share(hits, n, lessR, 0.975), wideF = share(alarms, m, lessF, 0.975);
    const here = at(r, f), poor = at(wideR[0], wideF[1]), fine = at(wideR[1], wideF[0]);
    const yes = CASES * prior, no = CASES * (1 - prior);
    return {
      recall: [r, rLow, rHigh],
      specificity: [1 - f, 1 - fHigh, 1 - fLow],
      precision: here.precision === null ? null
        : [here.precision, poor.precision || 0, fine.precision === null ? 1 : fine.precision],
      alerts: [here.alerts, at(wideR[0], wideF[0]).alerts, at(wideR[1], wideF[1]).alerts].map((v) => CASES * v),
      cost: [here.cost, fine.cost, poor.cost],
      found: [yes * r, yes * rLow, yes * rHigh],
      missed: [yes * (1 - r), yes * (1 - rHigh), yes * (1 - rLow)],
      false_alarms: [no * f, no * fLow, no * fHigh],
      left_alone: [no * (1 - f), no * (1 - fHigh), no * (1 - fLow)],
    };
  }

  // Counts -------------------------------------------------------------------------------------------------

  function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    return new Float64Array(bytes.buffer);
  }

  function sums(steps) {
    const total = [0];
    steps.forEach((step) => total.push(total[total.length - 1] + step));
    return total;
  }

  function readCurve(packed) {
    const hits = sums(packed.hits), alarms = sums(packed.alarms);
    const curve = {
      thresholds: unpack(packed.thresholds), hits, alarms, whole: packed.whole, effects: packed.effects,
      positives: hits[hits.length - 1], negatives: alarms[alarms.length - 1],
    };
    curve.shown = spread(curve);
    return curve;
  }

  // A few hundred cuts that show the curves as well as all of them would.
  function spread(curve) {
    const n = curve.positives || 1, m = curve.negatives || 1, kept = [0];
    let last = 0;
    for (let i = 1; i < curve.hits.length; i += 1) {
      const along = curve.hits[i] / n + curve.alarms[i] / m;
      if (along - last >= 2 / 300 || i + 1 === curve.hits.length || i < 30) { kept.push(i); last = along; }
    }
    return kept;
  }

  // The first place where a rising test turns true.
  function first(length, test) {
    let low = 0, high = length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (test(middle)) { high = middle; } else { low = middle + 1; }
    }
    return low;
  }

  function oddsFactor(before, after) {
    return before > 0 && before < 1 && after < 1 && before !== after
      ? (after / (1 - after)) / (before / (1 - before)) : 1;
  }

  function atUse(score, odds) { return odds === 1 ? score : score * odds / (score * odds + 1 - score); }

  function atData(threshold, odds) {
    return odds === 1 ? threshold : threshold / (threshold + (1 - threshold) * odds);
  }

  // The cut that a state asks for, and the threshold it amounts to.
  function settle(curve, state, before) {
    const odds = oddsFactor(before, state.prior);
    const asked = state.followsCost ? state.cost[0] / (state.cost[0] + state.cost[1]) : state.threshold;
    const limit = atData(asked, odds) * (1 - 1e-12);
    const wanted = first(curve.thresholds.length, (i) => curve.thresholds[i] < limit);
    const alerts = (i) => CASES * (state.prior * curve.hits[i] / (curve.positives || 1)
      + (1 - state.prior) * curve.alarms[i] / (curve.negatives || 1));
    const most = state.alerts >= CASES ? curve.thresholds.length
      : first(curve.hits.length, (i) => alerts(i) > state.alerts + CASES * 1e-12) - 1;
    const cut = Math.min(wanted, most), limited = most < wanted;
    // A hair below the score it stands for, so that rounding leaves that row on the same side everywhere.
    const moved = limited || (!curve.whole && asked < 1);
    const threshold = !moved ? asked : cut ? atUse(curve.thresholds[cut - 1], odds) * (1 - 1e-12) : 1;
    return { cut, odds, limited, threshold };
  }

  // Words --------------------------------------------------------------------------------------------------

  function few(x) { return Number(Number(x).toPrecision(4)); }

  // Numbers that a slider may take: three digits, of what is left to 1 if that is less.
  function tidy(x) { return Number(x.toPrecision(3)); }

  function tidyShare(x) { return x < 0.5 ? tidy(x) : Number((1 - tidy(1 - x)).toPrecision(12)); }

  function whole(x) {
    if (x === 0 || Math.abs(x) >= 9.95) { return Math.round(x).toLocaleString("en-US"); }
    return x < 0.05 ? "under 0.1" : x.toFixed(1);
  }

  function percent(x) { return (100 * x).toFixed(1) + "%"; }

  function money(x) { return x === 0 ? "0" : Math.abs(x) >= 0.001 && Math.abs(x) < 1e6 ? String(Number(x.toPrecision(3))) : x.toExponential(2); }

  // Counts as whole numbers that add up, where all are large enough to be shown as such.
  function counted(found, prior) {
    const values = ["found", "missed", "false_alarms"].map((name) => found[name][0]);
    if (values.some((x) => x > 0 && x < 9.95)) { return {}; }
    const yes = Math.round(CASES * prior), right = Math.min(Math.round(values[0]), yes), wrong = Math.round(values[2]);
    const counts = { found: right, missed: yes - right, false_alarms: wrong, left_alone: CASES - yes - wrong, alerts: right + wrong };
    return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, whole(count)]));
  }

  const SHOW = { recall: percent, specificity: percent, precision: percent, cost: money };

  function quoted(text) { return /^[\w./:=@%+,-]+$/.test(text) ? text : "'" + text.replace(/'/g, "'\\''") + "'"; }

  // One class against the rest -----------------------------------------------------------------------------

  const SCALES = {
    threshold: { to: (x) => tidyShare(1 / (1 + Math.exp(-x))), from: (y) => Math.log(y / (1 - y)), words: (y) => "probability " + few(y) },
    ratio: { to: (x) => tidy(10 ** x), from: Math.log10, words: (y) => "a miss costs " + few(y) + " false alarms" },
    prior: { to: (x) => tidyShare(1 / (1 + Math.exp(-x))), from: (y) => Math.log(y / (1 - y)), words: (y) => percent(y) + " of the cases" },
    alerts: { to: (x) => tidy(10 ** x), from: Math.log10, words: (y) => (y >= CASES ? "no limit" : whole(y) + " of 10,000 cases") },
  };

  function operatingPanel(root, data) {
    const curves = data.curves.map(readCurve);
    const find = (name) => root.querySelector('[data-part="' + name + '"]');
    const picker = find("class");
    let which = picker ? picker.selectedIndex : 0;
    let state, start, pending = false;

    function begin() {
      const code = data.codes[which];
      const given = data.start[which];
      state = {
        threshold: given.threshold, cost: given.cost.slice(), prior: data.prior[code],
        alerts: data.alerts, followsCost: data.follows_cost,
      };
      start = Object.assign({}, state, { cost: state.cost.slice() });
      update();
    }

    function read(name, value) {
      if (!Number.isFinite(value)) { return; }
      if (name === "threshold" && value >= 0 && value <= 1) { state.threshold = value; state.followsCost = false; }
      if (name === "ratio" && value > 0) { state.cost = [state.cost[0], few(state.cost[0] * value)]; state.followsCost = true; }
      if (name === "prior" && value > 0 && value < 1) { state.prior = value; }
      if (name === "alerts" && value >= 0) { state.alerts = Math.min(value, CASES); }
      update();
    }

    Object.keys(SCALES).forEach((name) => {
      const slider = find(name), box = find(name + "-box");
      slider.addEventListener("input", () => read(name, SCALES[name].to(Number(slider.value))));
      box.addEventListener("change", () => read(name, Number(box.value) / (name === "prior" ? 100 : 1)));
    });
    if (picker) { picker.addEventListener("change", () => { which = picker.selectedIndex; begin(); }); }
    find("reset").addEventListener("click", begin);

    function put(name, interval, text) {
      root.querySelectorAll('[data-figure="' + name + '"]').forEach((node) => {
        const show = SHOW[name] || whole;
        node.textContent = text || (interval ? show(interval[0]) : "–");
        ["value", "low", "high"].forEach((end, i) => { node.dataset[end] = interval ? interval[i] : ""; });
        const range = node.parentNode.querySelector("small[data-range]");
        if (range) { range.textContent = interval ? show(interval[1]) + " to " + show(interval[2]) : "cannot be told"; }
      });
    }

    function update() {
      const curve = curves[which], code = data.codes[which];
      const settled = settle(curve, state, data.data_prior[code]);
      const found = figures(curve, settled.cut, state.prior, state.cost);
      const words = found.recall ? counted(found, state.prior) : {};
      const set = { threshold: settled.threshold, ratio: state.cost[1] / state.cost[0], prior: state.prior, alerts: state.alerts };
      Object.keys(SCALES).forEach((name) => {
        const slider = find(name), box = find(name + "-box");
        slider.value = SCALES[name].from(Math.max(set[name], 1e-9));
        slider.setAttribute("aria-valuetext", SCALES[name].words(set[name]));
        if (box !== document.activeElement || Number(box.value) !== set[name]) {
          box.value = few(name === "prior" ? 100 * set[name] : set[name]);
        }
      });
      ["recall", "specificity", "precision", "alerts", "cost", "found", "missed", "false_alarms", "left_alone"]
        .forEach((name) => put(name, found[name], words[name]));
      root.dataset.cut = settled.cut;
      root.dataset.threshold = settled.threshold;
      find("positives").textContent = whole(CASES * state.prior);
      find("negatives").textContent = whole(CASES * (1 - state.prior));
      find("name").textContent = data.classes[code];
      find("unit").textContent = money(state.cost[0]);
      find("miss").textContent = money(state.cost[1]);
      find("sentence").textContent = sentence(found, words, data.classes[code], settled);
      const line = find("command");
      if (line) { line.textContent = command(code, settled); }
      find("strip").replaceChildren(...strip(found));
      if (!pending) { pending = true; window.requestAnimationFrame(() => { pending = false; plot(); }); }
    }

    function sentence(found, words, name, settled) {
      if (!found.recall) { return "The held-out rows have no case on one of the two sides, so nothing can be told."; }
      const short = name.length > 60 ? name.slice(0, 59) + "…" : name;
      const say = (figure) => words[figure] || whole(found[figure][0]);
      const text = "Of 10,000 cases, " + whole(CASES * state.prior) + " are “" + short + "”. The model raises "
        + say("alerts") + " alerts: " + say("found") + " are right and " + say("false_alarms") + " are false. It misses "
        + say("missed") + ".";
      return text + (settled.limited ? " The alert capacity sets the threshold." : "");
    }

    function strip(found) {
      return ["found", "missed", "false_alarms"].map((name) => {
        const part = document.createElement("span");
        const total = found.found ? found.found[0] + found.missed[0] + found.false_alarms[0] : 0;
        part.className = name;
        part.style.flexGrow = total > 0 ? found[name][0] / total : 0;
        return part;
      });
    }

    function command(code, settled) {
      const parts = ["equipoise retune", quoted(data.model)];
      const whole = curves[which].whole, cost = "--cost fp=" + state.cost[0] + ",fn=" + state.cost[1];
      if (settled.limited && whole) {
        parts.push("--alerts " + Number((state.alerts / CASES).toPrecision(12)));
      } else {
        if (state.followsCost) { parts.push(cost); }
        if (!state.followsCost || !whole) { parts.push("--threshold " + settled.threshold); }
      }
      if (state.prior !== data.prior[code]) { parts.push("--prior " + state.prior); }
      return parts.join(" ");
    }

    // Curves with the present and the first point on them.
    function plot() {
      const nodes = ["pr", "roc", "costs"].map(find);
      if (!nodes[0].offsetParent || !window.Plotly) { return; }
      const curve = curves[which], code = data.codes[which], n = curve.positives || 1, m = curve.negatives || 1;
      const now = settle(curve, state, data.data_prior[code]), then = settle(curve, start, data.data_prior[code]);
      const p = state.prior, c = house.colors();
      const recall = (i) => curve.hits[i] / n, wrong = (i) => curve.alarms[i] / m;
      const precision = (i) => { const r = p * recall(i), f = (1 - p) * wrong(i); return r + f > 0 ? r / (r + f) : 1; };
      const cost = (i) => state.cost[0] * (1 - p) * wrong(i) + state.cost[1] * p * (1 - recall(i));
      const level = (i) => (i ? atUse(curve.thresholds[i - 1], now.odds) : 1);
      const some = curve.shown;
      const line = (xs, ys, hover) => ({
        x: xs, y: ys, mode: "lines", line: { color: c.accent, width: 2.5 }, customdata: some.map(level), name: "every threshold",
        hovertemplate: hover + "<br>threshold %{customdata:.4~g}<extra></extra>",
      });
      const chance = (xs, ys, name) => ({ x: xs, y: ys, mode: "lines", name, hoverinfo: "skip", line: { color: c.muted, width: 1.5, dash: "dot" } });
      const dots = (x, y) => [
        { x: [x(then)], y: [y(then)], mode: "markers", name: "recommended", marker: { color: c.paper, size: 11, line: { color: c.ink, width: 2 } }, hoverinfo: "name" },
        { x: [x(now)], y: [y(now)], mode: "markers", name: "now", marker: { color: c.minority, size: 13, line: { color: c.paper, width: 2 } }, hoverinfo: "name" },
      ];
      const unit = { range: [-0.02, 1.03], tickformat: ".0%" };
      house.plot(nodes[0], [
        line(some.map(recall), some.map(precision), "recall %{x:.1%}<br>precision %{y:.1%}"), chance([0, 1], [p, p], "by chance"),
        ...dots((s) => recall(s.cut), (s) => precision(s.cut)),
      ], { xaxis: { title: { text: "recall" }, ...unit }, yaxis: { title: { text: "precision" }, ...unit }, showlegend: false }, 280);
      house.plot(nodes[1], [
        line(some.map(wrong), some.map(recall), "false alarms %{x:.1%}<br>recall %{y:.1%}"), chance([0, 1], [0, 1], "by chance"),
        ...dots((s) => wrong(s.cut), (s) => recall(s.cut)),
      ], { xaxis: { title: { text: "false alarms" }, ...unit }, yaxis: { title: { text: "recall" }, ...unit }, showlegend: false }, 280);
      const levels = some.map((i) => Math.min(Math.max(level(i), 1e-6), 1));
      const low = Math.max(Math.min(...levels), 1e-4), none = cost(0), all = cost(curve.hits.length - 1);
      house.plot(nodes[2], [
        line(levels, some.map(cost), "cost per case %{y:.3~g}"), chance([low, 1], [none, none], "never alert"), chance([low, 1], [all, all], "always alert"),
        ...dots((s) => Math.min(Math.max(s.threshold, 1e-6), 1), (s) => cost(s.cut)),
      ], {
        xaxis: { title: { text: "threshold" }, type: "log", range: [Math.log10(low) - 0.05, 0.03], exponentformat: "power", dtick: low < 0.05 ? 1 : undefined },
        yaxis: { title: { text: "cost per case" }, rangemode: "tozero" }, showlegend: false,
      }, 280);
    }

    document.addEventListener("equipoise:shown", plot);
    begin();
  }

  // Cost matrix of many classes ----------------------------------------------------------------------------

  function matrixPanel(root, data) {
    const given = data.matrix, k = data.classes.length;
    const proba = unpack(given.proba), truth = given.truth, weight = given.weight || truth.map(() => 1);
    const cells = Array.from(root.querySelectorAll("input[data-cost]"));
    const shares = Array.from(root.querySelectorAll("input[data-prior]"));
    const find = (name) => root.querySelector('[data-part="' + name + '"]');
    const confusion = Array.from(root.querySelectorAll("[data-count]"));
    let cost, prior;

    function decide(row) {
      let best = 0, least = Infinity;
      for (let d = 0; d < k; d += 1) {
        let sum = 0;
        for (let t = 0; t < k; t += 1) {
          const before = data.data_prior[t];
          sum += proba[row * k + t] * (before > 0 ? prior[t] / before : 0) * cost[t][d];
        }
        if (sum < least) { least = sum; best = d; }
      }
      return best;
    }

    function update() {
      const counts = Array.from({ length: k }, () => new Array(k).fill(0));
      const totals = new Array(k).fill(0);
      truth.forEach((t, row) => { counts[t][decide(row)] += weight[row]; totals[t] += weight[row]; });
      let mean = 0, variance = 0;
      const known = prior.reduce((sum, p, t) => sum + (totals[t] ? p : 0), 0);
      counts.forEach((row, t) => {
        if (!totals[t] || !known) { return; }
        const share = prior[t] / known;
        const own = row.reduce((sum, n, d) => sum + n * cost[t][d], 0) / totals[t];
        const spread = row.reduce((sum, n, d) => sum + n * (cost[t][d] - own) ** 2, 0) / totals[t];
        mean += share * own;
        variance += share ** 2 * spread / totals[t];
      });
      confusion.forEach((node) => {
        const [t, d] = node.dataset.count.split(",").map(Number);
        const share = totals[t] ? counts[t][d] / totals[t] : 0;
        node.dataset.value = CASES * prior[t] * share;
        node.textContent = whole(CASES * prior[t] * share);
        node.parentNode.style.setProperty("--share", (100 * share).toFixed(1) + "%");
      });
      root.querySelectorAll("[data-recall]").forEach((node) => {
        const t = Number(node.dataset.recall);
        const range = totals[t] ? exactInterval(counts[t][t], totals[t], 0.95) : null;
        node.dataset.value = range ? counts[t][t] / totals[t] : "";
        node.textContent = range ? percent(counts[t][t] / totals[t]) + " (" + percent(range[0]) + " to " + percent(range[1]) + ")" : "–";
      });
      const half = 1.959963984540054 * Math.sqrt(variance);
      const total = find("matrix-cost");
      total.dataset.value = mean; total.dataset.low = Math.max(mean - half, 0); total.dataset.high = mean + half;
      total.textContent = money(mean) + " (" + money(Math.max(mean - half, 0)) + " to " + money(mean + half) + ")";
      const moved = prior.some((p, t) => Math.abs(p - data.prior[t]) > 1e-12);
      find("matrix-command").textContent = ["equipoise retune", quoted(data.model), "--cost '" + cost.map((row) => row.join(",")).join(";") + "'"]
        .concat(moved ? ["--prior " + prior.map((p) => Number(p.toPrecision(12))).join(",")] : []).join(" ");
    }

    function read() {
      cells.forEach((cell) => {
        const [t, d] = cell.dataset.cost.split(",").map(Number), value = Number(cell.value);
        const good = cell.value !== "" && Number.isFinite(value) && value >= 0;
        cell.setAttribute("aria-invalid", String(!good));
        if (good) { cost[t][d] = value; }
      });
      update();
    }

    function readPrior() {
      const wanted = shares.map((box) => Math.max(Number(box.value) || 0, 0));
      const sum = wanted.reduce((a, b) => a + b, 0);
      if (sum > 0) { prior = wanted.map((p) => p / sum); }
      update();
    }

    function begin() {
      cost = given.cost.map((row) => row.slice());
      prior = data.prior.slice();
      cells.forEach((cell) => { const [t, d] = cell.dataset.cost.split(",").map(Number); cell.value = few(cost[t][d]); });
      shares.forEach((box, t) => { box.value = few(100 * prior[t]); });
      update();
    }

    cells.forEach((cell) => cell.addEventListener("input", read));
    shares.forEach((box) => box.addEventListener("change", readPrior));
    find("matrix-reset").addEventListener("click", begin);
    begin();
  }

  const payloads = JSON.parse(document.getElementById("live-data").textContent);
  document.querySelectorAll("[data-live]").forEach((root) => {
    const data = payloads[Number(root.dataset.live)];
    operatingPanel(root.querySelector(".live-one"), data);
    const matrix = root.querySelector(".live-matrix");
    if (matrix) { matrixPanel(matrix, data); }
  });
})();
