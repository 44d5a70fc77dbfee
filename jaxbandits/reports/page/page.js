// Draws the charts of a report, sorts its tables, and lays both out anew for the screen, the dark and the printer.
(function () {
  "use strict";
  const root = document.documentElement;
  const PRINT_WIDTH = 660; // CSS pixels between the margins of a page of A4 or Letter
  const charts = JSON.parse(document.getElementById("charts").textContent);

  const darkness = matchMedia("(prefers-color-scheme: dark)");
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // A colour on a dark page: a third of the way to white.
  const lighter = (hex) => "#" + [1, 3, 5].map((i) => {
    const part = parseInt(hex.slice(i, i + 2), 16);
    return Math.round(part + (255 - part) / 3).toString(16).padStart(2, "0");
  }).join("");

  const create = (parent, tag, name, text) => {
    const node = document.createElement(tag);
    if (name) node.className = name;
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  };

  const number = (x) => {
    if (x === null || x === undefined) return "–";
    const size = Math.abs(x);
    if (size >= 1e9) return plain(x / 1e9) + "G";
    if (size >= 1e6) return plain(x / 1e6) + "M";
    if (size > 0 && size < 1e-4) return x.toExponential(2).replace("-", "−");
    return plain(x);
  };

  const plain = (x) => {
    const short = Math.abs(x) >= 1e4 ? Math.round(x) : Number(x.toPrecision(4));
    const [whole, rest] = String(Math.abs(short)).split(".");
    const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    return (short < 0 ? "−" : "") + grouped + (rest ? "." + rest : "");
  };

  // Ticks of a logarithmic axis: powers of ten, with 3s or 2s and 5s between them where there are few.
  const decades = (low, high) => {
    for (const steps of [[1], [1, 3], [1, 2, 5]]) {
      const ticks = [];
      for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++) {
        for (const m of steps) {
          const x = Number(`${m}e${k}`);
          if (x >= low && x <= high) ticks.push(x);
        }
      }
      if (ticks.length >= 3 || steps.length === 3) {
        const stride = Math.ceil(ticks.length / 7) || 1;
        return ticks.filter((_, i) => i % stride === 0);
      }
    }
  };

  // The markers of matplotlib by their names: corners around (0, 0); a circle has none.
  const turned = (corners, turns) => corners.map(([x, y]) => [
    x * Math.cos(turns) - y * Math.sin(turns), x * Math.sin(turns) + y * Math.cos(turns)]);
  const up = [[0, -1.2], [1.1, 0.9], [-1.1, 0.9]];
  const plus = [[-0.4, -1.2], [0.4, -1.2], [0.4, -0.4], [1.2, -0.4], [1.2, 0.4], [0.4, 0.4], [0.4, 1.2], [-0.4, 1.2],
    [-0.4, 0.4], [-1.2, 0.4], [-1.2, -0.4], [-0.4, -0.4]];
  const star = [...Array(10).keys()].map((i) => turned([[0, i % 2 ? -0.55 : -1.4]], (i * Math.PI) / 5)[0]);
  const SHAPES = {
    o: null, s: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]], D: [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]],
    "^": up, v: turned(up, Math.PI), "<": turned(up, -Math.PI / 2), ">": turned(up, Math.PI / 2), P: plus,
    X: turned(plus, Math.PI / 4), "*": star,
  };
  const MARK_SPACE = 110; // CSS pixels between two markers of a curve

  const mark = (ctx, kind, x, y, size) => {
    ctx.beginPath();
    if (!SHAPES[kind]) ctx.arc(x, y, size, 0, 2 * Math.PI);
    else SHAPES[kind].forEach(([dx, dy], i) => (i ? ctx.lineTo : ctx.moveTo).call(ctx, x + size * dx, y + size * dy));
    ctx.closePath();
    ctx.fill();
  };

  // A piece of a line in a legend.
  const sample = (parent, look) => {
    const svg = parent.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
    const part = (tag, values) => {
      const node = svg.appendChild(document.createElementNS(svg.namespaceURI, tag));
      Object.entries(values).forEach(([name, value]) => node.setAttribute(name, value));
    };
    Object.entries({ class: "swatch", viewBox: "0 0 34 12", "aria-hidden": "true" })
      .forEach(([name, value]) => svg.setAttribute(name, value));
    part("line", { x1: 0, x2: 34, y1: 6, y2: 6, stroke: "currentColor", "stroke-width": 2, "stroke-dasharray": look.dash.join(" ") });
    if (!SHAPES[look.mark]) part("circle", { cx: 17, cy: 6, r: 3.5, fill: "currentColor" });
    else part("polygon", { points: SHAPES[look.mark].map(([x, y]) => `${17 + 3.5 * x},${6 + 3.5 * y}`).join(" "), fill: "currentColor" });
    return svg;
  };

  // Ticks of which the texts have room, from the left.
  const thinned = (ticks, place, width) => {
    const shown = [];
    let end = -Infinity;
    for (const tick of ticks) {
      const half = 3.6 * width(tick) + 6;
      if (place(tick) - half >= end) {
        shown.push(tick);
        end = place(tick) + half;
      }
    }
    return shown;
  };

  class Chart {
    constructor(node, about) {
      Object.assign(this, { node, about, hidden: new Set(), at: about.keys.map(() => 0) });
      this.logs = { x: about.xLog, y: about.yLog };
      this.makeControls();
      this.place = create(node, "div", "place");
      this.field = create(node, "div", "plot");
      this.makeLegend();
      if (about.note) create(node, "p", "note", about.note);
      this.draw();
      new ResizeObserver(() => {
        if (!root.classList.contains("printing") && this.field.clientWidth !== this.width) this.draw();
      }).observe(this.field);
    }

    makeControls() {
      const { about } = this;
      const controls = create(this.node, "div", "controls");
      about.keys.forEach((key, i) => {
        if (key.values.length < 2) return;
        const label = create(controls, "label", "", key.name + " = ");
        const select = create(label, "select");
        key.values.forEach((value, j) => {
          const option = create(select, "option", "", value);
          option.value = j;
        });
        select.addEventListener("change", () => {
          this.at[i] = Number(select.value);
          this.draw();
        });
      });
      if (!about.scales) return;
      for (const axis of ["x", "y"]) {
        const values = axis === "x" ? about.x : about.series.flatMap((one) => one.y);
        if (axis === "x" && values.some((x) => x <= 0)) continue;
        if (axis === "y" && !values.some((y) => y > 0)) continue;
        const button = create(controls, "button", "", `log ${axis}`);
        button.type = "button";
        button.setAttribute("aria-pressed", this.logs[axis]);
        button.addEventListener("click", () => {
          this.logs[axis] = !this.logs[axis];
          button.setAttribute("aria-pressed", this.logs[axis]);
          this.draw();
        });
      }
    }

    makeLegend() {
      const legend = create(this.node, "div", "legend");
      this.values = new Map();
      this.swatches = new Map();
      for (const label of this.about.labels) {
        const button = create(legend, "button");
        button.type = "button";
        button.setAttribute("aria-pressed", "true");
        this.swatches.set(label, sample(button, this.about.looks[label]));
        create(button, "span", "", label);
        this.values.set(label, create(button, "span", "value"));
        button.addEventListener("click", () => {
          const shown = this.hidden.delete(label);
          if (!shown) this.hidden.add(label);
          button.setAttribute("aria-pressed", shown);
          this.draw();
        });
      }
    }

    // The line of every label at the chosen point of the grid.
    lines() {
      return this.about.labels.map((label) =>
        this.about.series.find((one) => one.label === label && one.at.every((j, i) => j === null || j === this.at[i])));
    }

    ink(label) {
      const own = this.about.looks[label].colour;
      if (own === "#000000") return colour("--ink");
      return darkness.matches && !root.classList.contains("printing") ? lighter(own) : own;
    }

    draw() {
      const { about, field } = this;
      if (this.drawn) this.drawn.destroy();
      this.width = root.classList.contains("printing") ? PRINT_WIDTH : field.clientWidth;
      const lines = (this.shown = this.lines());
      const strict = this.strict();
      const visible = (values) => (strict ? values.map((y) => (y > 0 ? y : null)) : values);
      const data = [about.x];
      const series = [{}];
      const bands = [];
      lines.forEach((line) => {
        const stroke = this.ink(line.label);
        const show = !this.hidden.has(line.label);
        data.push(visible(line.y));
        series.push({
          label: line.label, stroke, width: 2, show, dash: about.looks[line.label].dash, points: { show: false }, spanGaps: true,
          ...(about.joined ? {} : { paths: () => null }),
        });
        if (!line.low) return;
        // an interval that reaches below zero ends at the axis of a logarithmic scale
        const floor = Math.min(...line.y.filter((y) => y > 0)) / 3;
        const low = line.low.map((y) => (strict && y !== null && y <= floor ? floor : y));
        for (const values of [low, line.high]) {
          data.push(visible(values));
          series.push({ label: "", stroke: "transparent", width: 0, show, points: { show: false }, spanGaps: true });
        }
        if (about.band) bands.push({ series: [data.length - 1, data.length - 2], fill: stroke + "2e" });
      });
      lines.forEach((line) => {
        const swatch = this.swatches.get(line.label);
        swatch.style.color = this.ink(line.label);
      });
      const step = (i) => (lines[0].low ? (i - 1) % 3 : 0);
      const ring = (u, i) => (step(i) === 0 ? series[i].stroke : "transparent");
      this.drawn = new uPlot({
        width: this.width, height: Math.max(240, Math.min(420, Math.round(0.6 * this.width))),
        legend: { show: false }, bands, series,
        cursor: { drag: { x: false, y: false }, points: { stroke: ring, fill: ring, size: 8 } },
        scales: { x: this.scale("x", about.x.filter((_, i) => lines.some((line) => line.y[i] !== null))), y: this.scale("y", lines.flatMap((line, i) =>
          this.hidden.has(line.label) ? [] : [...data.slice(1)[i * (line.low ? 3 : 1)],
            ...(line.low ? [...data.slice(1)[i * 3 + 1], ...data.slice(1)[i * 3 + 2]] : [])])) },
        axes: [this.axis("x"), this.axis("y")],
        hooks: { draw: [(u) => this.drawBars(u)], setCursor: [(u) => this.say(u.cursor.idx)] },
      }, data, field);
      this.say(null);
    }

    // Whether regret has a logarithmic axis on which zero has no place.
    strict() {
      return this.logs.y && !this.about.linear;
    }

    scale(axis, values) {
      if (axis === "y" && this.logs.y && this.about.linear) {
        const known = values.filter((y) => y !== null);
        const ends = [Math.min(0, ...known), Math.max(this.about.linear, ...known)];
        return { time: false, distr: 4, asinh: this.about.linear, range: () => [ends[0], 1.25 * ends[1]] };
      }
      const log = this.logs[axis];
      const known = values.filter((x) => x !== null && (!log || x > 0));
      let [low, high] = known.length ? [Math.min(...known), Math.max(...known)] : [log ? 1 : 0, log ? 10 : 1];
      if (axis === "y" && !log) low = Math.min(low, 0);
      if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
      if (axis === "x" && !this.about.joined) return { time: false, range: () => [low - 0.5, high + 0.5] };
      const pad = this.about.band && axis === "x" ? 0 : 0.04;
      const ends = log
        ? [low * (low / high) ** pad, high * (high / low) ** pad]
        : [axis === "y" && low === 0 ? 0 : low - pad * (high - low), high + pad * (high - low)];
      return { time: false, distr: log ? 3 : 1, log: 10, range: () => ends };
    }

    axis(axis) {
      const { about } = this;
      const named = axis === "x" && about.ticks ? new Map(about.ticks) : null;
      const text = (x) => {
        const words = named ? named.get(x) : number(x);
        return words.length > 14 ? words.slice(0, 13) + "…" : words;
      };
      const splits = (u, _, low, high) => {
        const linear = axis === "y" ? about.linear : null;
        const ticks = named ? [...named.keys()] : linear ? [0, ...decades(linear, high)] : decades(low, high);
        return axis === "x" ? thinned(ticks, (x) => u.valToPos(x, "x"), (x) => text(x).length) : ticks;
      };
      return {
        label: axis === "x" ? about.xName : about.yName, stroke: colour("--ink"), font: "12px system-ui, sans-serif",
        labelFont: "13px system-ui, sans-serif", labelSize: 22, grid: { stroke: colour("--grid"), width: 1 },
        ticks: { stroke: colour("--line"), width: 1 }, values: (u, ticks) => ticks.map(text),
        ...(named || this.logs[axis] ? { splits, filter: (u, ticks) => ticks } : { space: axis === "x" ? 70 : 40 }),
        ...(axis === "y" ? { size: (u, texts) => 26 + 7 * Math.max(3, ...(texts || []).map((x) => x.length)) } : { size: 36 }),
      };
    }

    // Markers, and intervals as bars where they are not bands. Over names, algorithms stand side by side.
    drawBars(u) {
      const { about } = this;
      const shown = this.shown.filter((line) => !this.hidden.has(line.label));
      const room = (0.8 * u.bbox.width) / about.x.length / Math.max(1, shown.length);
      const step = about.joined ? 0 : Math.min(9 * devicePixelRatio, room);
      const bottom = u.bbox.top + u.bbox.height;
      const height = (y) => (this.strict() && y <= 0 ? bottom : Math.min(bottom, u.valToPos(y, "y", true)));
      u.ctx.save();
      u.ctx.lineWidth = 1.2 * devicePixelRatio;
      shown.forEach((line, j) => {
        u.ctx.strokeStyle = u.ctx.fillStyle = this.ink(line.label);
        const kind = about.looks[line.label].mark;
        // markers of neighbours do not lie on one another
        let last = u.bbox.left - MARK_SPACE * devicePixelRatio * (1 - (j + 1) / (shown.length + 1));
        about.x.forEach((x, i) => {
          if (line.y[i] === null || (this.strict() && line.y[i] <= 0)) return;
          const across = u.valToPos(x, "x", true) + (j - (shown.length - 1) / 2) * step;
          if (!about.band && line.low && line.low[i] !== null) {
            u.ctx.beginPath();
            u.ctx.moveTo(across, height(line.low[i]));
            u.ctx.lineTo(across, height(line.high[i]));
            u.ctx.stroke();
          }
          const dense = about.joined && (about.band || about.x.length > 30);
          if (dense && across - last < MARK_SPACE * devicePixelRatio) return;
          last = across;
          mark(u.ctx, kind, across, height(line.y[i]), 3.5 * devicePixelRatio);
        });
      });
      u.ctx.restore();
    }

    // The values under the pointer; without one, those at the end of a curve.
    say(i) {
      const { about } = this;
      const known = (line, j) => line.y.slice(0, j + 1).findLastIndex((y) => y !== null);
      const last = about.band ? Math.max(...this.shown.map((line) => known(line, about.x.length - 1))) : null;
      const at = i === null || i === undefined ? last : i;
      const named = about.ticks && at !== null ? about.ticks[at][1] : null;
      this.place.textContent = at === null ? "" : `${about.xName} = ${named === null ? number(about.x[at]) : named}`;
      this.shown.forEach((line) => {
        const j = at === null ? -1 : about.band ? known(line, at) : at; // lines have checkpoints of their own
        const low = line.low && j >= 0 ? line.low[j] : null;
        const interval = low === null || low === undefined ? "" : ` [${number(low)}, ${number(line.high[j])}]`;
        this.values.get(line.label).textContent = j < 0 ? "" : number(line.y[j]) + interval;
      });
    }
  }

  const sortTable = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    const order = (row, i) => {
      const cell = row.cells[i];
      return cell.dataset.order === undefined ? cell.textContent : Number(cell.dataset.order);
    };
    const compare = (a, b) => {
      if (typeof a === "number" && typeof b === "number") return a - b;
      if (typeof a === "number") return -1;
      if (typeof b === "number") return 1;
      return a < b ? -1 : a > b ? 1 : 0;
    };
    heads.forEach((head, i) => {
      head.querySelector("button").addEventListener("click", () => {
        const rising = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", rising ? "ascending" : "descending");
        const sign = rising ? 1 : -1;
        const rows = [...body.rows].sort((a, b) => {
          const [x, y] = [order(a, i), order(b, i)];
          return typeof x === typeof y ? sign * compare(x, y) : compare(x, y); // what is missing comes last
        });
        body.append(...rows);
      });
    });
  };

  const made = [...document.querySelectorAll(".chart")].map((node) => new Chart(node, charts[node.dataset.chart]));
  document.querySelectorAll("table.sortable").forEach(sortTable);
  const redraw = () => made.forEach((chart) => chart.draw());
  darkness.addEventListener("change", redraw);
  addEventListener("beforeprint", () => {
    root.classList.add("printing");
    redraw();
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    redraw();
  });
  root.dataset.ready = "yes";
})();
