import { useMemo } from "react";
import { cut, visible } from "../kit/marks.ts";
import { Label } from "../kit/text.tsx";
import { words } from "../words.ts";
import styles from "./graph.module.css";
import type { TraceModel } from "./model.ts";
import { type PlacedNode, placed, type ServiceEdge, type ServiceGraph, serviceGraph } from "./services.ts";

const WIDTH = 190;
const HEIGHT = 62;
const GAP_X = 110;
const GAP_Y = 26;
const MARGIN = 16;
const NAME_CHARS_MAX = 22;

/** The services and their calls, aggregated over all spans. */
export function GraphView({ model }: { readonly model: TraceModel }) {
  const graph = useMemo(() => serviceGraph(model.columns, model.parent, model.path), [model]);
  const nodes = useMemo(() => placed(graph), [graph]);
  const byService = new Map(nodes.map((it) => [it.service, it] as const));
  const width = 2 * MARGIN + (Math.max(0, ...nodes.map((it) => it.layer)) + 1) * (WIDTH + GAP_X) - GAP_X;
  const height = 2 * MARGIN + (Math.max(0, ...nodes.map((it) => it.place)) + 1) * (HEIGHT + GAP_Y) - GAP_Y;
  const nameOf = (service: number) => model.columns.services[service] || words.trace.noService;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard
    <section className={styles.view} tabIndex={0} aria-label={words.trace.graph.label}>
      <svg width={width} height={height} role="img" aria-label={words.trace.graph.label}>
        {graph.edges.map((edge) => (
          <Edge
            key={`${edge.from} ${edge.to}`}
            edge={edge}
            from={byService.get(edge.from)}
            to={byService.get(edge.to)}
          />
        ))}
        {nodes.map((node) => (
          <Node key={node.service} node={node} name={nameOf(node.service)} />
        ))}
      </svg>
      {graph.hidden > 0 ? <p className={styles.note}>{words.trace.graph.hidden(graph.hidden)}</p> : null}
      <Calls graph={graph} nameOf={nameOf} />
    </section>
  );
}

function xOf({ layer }: PlacedNode): number {
  return MARGIN + layer * (WIDTH + GAP_X);
}

function yOf({ place }: PlacedNode): number {
  return MARGIN + place * (HEIGHT + GAP_Y);
}

function Node({ node, name }: { readonly node: PlacedNode; readonly name: string }) {
  const { head, rest } = cut(visible(name), NAME_CHARS_MAX);
  return (
    <g transform={`translate(${xOf(node)} ${yOf(node)})`}>
      <title>{visible(name)}</title>
      <rect width={WIDTH} height={HEIGHT} rx="8" className={node.errors > 0 ? styles.failing : styles.node} />
      <rect
        width="5"
        height={HEIGHT - 16}
        x="8"
        y="8"
        rx="2"
        style={{ fill: `var(--service-${node.service % 24})` }}
      />
      <text x="22" y="21" className={styles.name}>
        {head}
        {rest > 0 ? "…" : ""}
      </text>
      <text x="22" y="38" className={styles.facts}>
        {words.trace.spans(node.spans)}
        {node.errors > 0 ? (
          <tspan className={styles.errors}>{` · ${words.trace.errors(node.errors)}`}</tspan>
        ) : null}
      </text>
      <text x="22" y="53" className={styles.facts}>
        {words.trace.graph.share(node.share)}
      </text>
    </g>
  );
}

function Edge({
  edge,
  from,
  to,
}: {
  readonly edge: ServiceEdge;
  readonly from: PlacedNode | undefined;
  readonly to: PlacedNode | undefined;
}) {
  if (from === undefined || to === undefined) {
    return null;
  }
  const isForward = to.layer > from.layer;
  const [x1, y1] = [xOf(from) + WIDTH, yOf(from) + HEIGHT / 2 - (isForward ? 0 : 8)];
  const [x2, y2] = [isForward ? xOf(to) : xOf(to) + WIDTH, yOf(to) + HEIGHT / 2 + (isForward ? 0 : 8)];
  const bend = isForward ? Math.max(40, (x2 - x1) / 2) : 50;
  const path = `M${x1} ${y1} C${x1 + bend} ${y1} ${isForward ? x2 - bend : x2 + bend} ${y2} ${x2} ${y2}`;
  const strokeWidth = 1 + Math.min(5, Math.log10(edge.calls) * 1.5);
  // Near its end, where the edges of a caller have parted.
  const labelX = isForward ? x2 - 12 : Math.max(x1, x2) + 44;
  const labelY = isForward ? y2 - 6 : (y1 + y2) / 2;
  return (
    <g>
      <path d={path} className={edge.errors > 0 ? styles.failingEdge : styles.edge} style={{ strokeWidth }} />
      {isForward ? (
        <path d={`M${x2 - 8} ${y2 - 4} L${x2 - 1} ${y2} L${x2 - 8} ${y2 + 4}`} className={styles.arrow} />
      ) : (
        <path d={`M${x2 + 8} ${y2 - 4} L${x2 + 1} ${y2} L${x2 + 8} ${y2 + 4}`} className={styles.arrow} />
      )}
      <text x={labelX} y={labelY} className={styles.label} textAnchor={isForward ? "end" : "middle"}>
        {`×${edge.calls.toLocaleString("en")}`}
        {edge.errors > 0 ? (
          <tspan className={styles.errors}>{` ${words.trace.errors(edge.errors)}`}</tspan>
        ) : null}
      </text>
    </g>
  );
}

/** The same as text. */
function Calls({
  graph,
  nameOf,
}: {
  readonly graph: ServiceGraph;
  readonly nameOf: (service: number) => string;
}) {
  const labels = words.trace.graph;
  if (graph.edges.length === 0) {
    return <p className={styles.note}>{labels.alone}</p>;
  }
  return (
    <table className={styles.calls}>
      <thead>
        <tr>
          <th scope="col">{labels.from}</th>
          <th scope="col">{labels.to}</th>
          <th scope="col">{labels.callsTitle}</th>
          <th scope="col">{words.trace.table.errors}</th>
        </tr>
      </thead>
      <tbody>
        {graph.edges
          .toSorted((a, b) => b.errors - a.errors || b.calls - a.calls)
          .map((edge) => (
            <tr key={`${edge.from} ${edge.to}`}>
              <td>
                <Label value={nameOf(edge.from)} />
              </td>
              <td>
                <Label value={nameOf(edge.to)} />
              </td>
              <td>{edge.calls.toLocaleString("en")}</td>
              <td className={edge.errors > 0 ? styles.errorCount : undefined}>
                {edge.errors.toLocaleString("en")}
              </td>
            </tr>
          ))}
      </tbody>
    </table>
  );
}
