"""The queries of pool.duckdb: verdicts, the views, and the wide table of every item (columns in docs/results.md)."""

from collections.abc import Sequence

from benchcheck.screen.steps import Step

__all__ = ["CLASS_VIEWS", "VERDICTS", "VIEWS", "wide_query"]

_COUNTS = (
    "count(*) filter (o.alive) as alive, "
    "count(*) filter (o.alive and o.outcome in ('passed', 'removed', 'failed')) as asked, "
    "count(*) filter (o.alive and o.outcome in ('passed', 'removed')) as answered, "
    "count(*) filter (o.alive and o.outcome = 'removed') as removed, "
    "count(*) filter (o.alive and o.outcome = 'failed') as failed, "
    "count(*) filter (o.alive and o.outcome = 'waiting') as waiting, "
    "count(*) filter (o.alive and o.outcome = 'pending') as pending"
)
"""How items that came to a step fared there: `answered` passed or were removed, `asked` were answered or failed."""

CLASS_VIEWS = {
    "by_class": "select t.class, a.step, count(*) as answered, avg(a.n_right / a.n_perm) as right_share, "
    "avg(1.0 / len(i.options)) as chance, "
    "count(*) filter (v.left_at = a.step and v.verdict = 'removed') as removed "
    "from truth t join items i using (item_id) join answers a using (item_id) "
    "join verdicts v using (item_id) group by all order by all",
    "class_verdicts": "select t.class, v.verdict, v.left_at, count(*) as items "
    "from truth t join verdicts v using (item_id) group by all order by all",
}
"""Views that have rows where a control benchmark's truth is known."""

VIEWS = {
    "last_errors": "select item_id, step, arg_max(error, line) as error, arg_max(detail, line) as detail, "
    "count(*) as rows from errors group by all",
    "survivors": "select i.*, v.margin from items i join verdicts v using (item_id) where v.verdict = 'kept'",
    "readings": "select item_id, bench, step, unnest(range(1, len(orders) + 1)) as reading, "
    "unnest(orders) as letter_order, unnest(logprobs) as logprobs, unnest(label_mass) as label_mass, "
    'unnest(margins) as margin, unnest("right") as is_right from answers',
    "funnel": f"with counts as (select o.step, {_COUNTS} from outcomes o group by o.step), "
    "scores as (select step, avg(n_right / n_perm) as right_share, avg(mean_margin) as mean_margin "
    "from answers group by step) "
    "select s.step, s.name, s.measures, coalesce(c.alive, 0) as alive, coalesce(c.asked, 0) as asked, "
    "coalesce(c.answered, 0) as answered, coalesce(c.removed, 0) as removed, "
    "c.removed / nullif(c.answered, 0) as removed_share, "
    "coalesce(c.failed, 0) as failed, coalesce(c.waiting, 0) as waiting, coalesce(c.pending, 0) as pending, "
    "a.right_share, a.mean_margin "
    "from steps s left join counts c using (step) left join scores a using (step) order by s.step",
    "benchmark_steps": f"select i.bench, o.step, {_COUNTS} from outcomes o join items i using (item_id) "
    "group by all order by all",
    "by_benchmark": "select i.bench, v.verdict, v.left_at, count(*) as items "
    "from items i join verdicts v using (item_id) group by all order by all",
    "by_category": "select i.bench, i.category, v.verdict, v.left_at, count(*) as items "
    "from items i join verdicts v using (item_id) group by all order by all",
    "issue_kinds": "with found as (select bench, item_id, source_id, rowid as place, unnest(issues) as issue "
    "from items) select bench, issue, count(*) as items, arg_min(item_id, place, 5) as examples, "
    "arg_min(source_id, place, 5) as source_ids from found group by all order by all",
    "gold_positions": "with places as (select i.bench, i.gold, len(i.options) as k, "
    "unnest(range(len(i.options))) as place from items i join verdicts v using (item_id) "
    "where v.verdict <> 'not_screened' and i.gold < len(i.options)) "
    "select bench, chr(65 + place::integer) as letter, count(*) as options, "
    "count(*) filter (gold = place) as items, sum(1 / k) as expected from places group by all order by all",
    "error_kinds": "select e.step, e.error, count(*) as rows, count(distinct e.item_id) as items, "
    "count(distinct e.item_id) filter (v.verdict = 'failed' and v.left_at = e.step) as failed, "
    "list_slice(list_sort(list(distinct e.item_id)), 1, 5) as examples "
    "from errors e join verdicts v using (item_id) group by all order by all",
    "engines": "select step, model, revision, engine->>'name' as engine, engine->>'version' as version, "
    "engine->>'dtype' as dtype, engine->>'device' as device, count(*) as items "
    "from answers group by all order by all",
    **CLASS_VIEWS,
}
"""Views of pool.duckdb, by name."""

VERDICTS = """
select p.item_id, p.verdict, p.left_at,
  if(p.verdict = 'kept', best.margin, a.mean_margin) as margin,
  case p.verdict
    when 'removed' then format('{}, margin {:.2f} nats; {}',
                               if(a.n_perm = 1, 'right', format('right in {} of {} orders', a.n_right, a.n_perm)),
                               a.mean_margin, s.measures)
    when 'failed' then concat(coalesce(e.error, 'failed'), ': ', coalesce(e.detail, 'no detail'))
    when 'waiting' then if(w.status is null, 'no frames of its video yet: run benchcheck frames extract',
                           concat_ws(': ', 'no frames', w.status, w.reason))
    when 'pending' then 'a step has still to ask it'
    when 'not_screened' then coalesce(nullif(array_to_string(i.issues, ', '), ''),
                                      if(i.format = 'mcq', 'left out by the sample', 'an open question'))
    else 'passed every step'
  end as reason
from placed p
join items i using (item_id)
left join steps s on s.step = p.left_at
left join answers a on a.item_id = p.item_id and a.step = p.left_at
left join last_errors e on e.item_id = p.item_id and e.step = p.left_at
left join videos w on w.frames_key = i.frames_key and w.status <> 'ready'
left join (select item_id, max(mean_margin) as margin from answers group by item_id) best
  on best.item_id = p.item_id
order by p.position
"""
"""One row per item, in the pool's order, from the `placed` table that the fold gives."""


def wide_query(steps: Sequence[Step]) -> str:
    """Return the query of pool_items.parquet: every item with every step's outcome."""
    columns, joins = [], []
    for step in steps:
        name, alias, error = f"step{step.number}", f"a{step.number}", f"e{step.number}"
        columns += [
            f"if({alias}.item_id is not null, 'ok', if({error}.item_id is null, null, 'error')) as {name}_status",
            f"{alias}.n_right as {name}_n_right",
            f"{alias}.n_perm as {name}_n_perm",
            f"{alias}.mean_margin as {name}_margin",
            f"list_min({alias}.label_mass) as {name}_label_mass",
            f"{alias}.orders as {name}_orders",
            f"{alias}.logprobs as {name}_logprobs",
            f"{error}.error as {name}_error",
        ]
        joins += [
            f"left join answers {alias} on {alias}.item_id = i.item_id and {alias}.step = {step.number}",
            f"left join last_errors {error} on {error}.item_id = i.item_id and {error}.step = {step.number}",
        ]
    return (
        f"select i.*, v.verdict, v.left_at, v.margin, v.reason, {', '.join(columns)} from items i "
        f"join verdicts v using (item_id) {' '.join(joins)} order by i.bench, i.item_id"
    )
