"""Commands that look and ask no model: what is left, and where a study stands."""

from benchcheck.cli.options import OneStep, Pilot, StudyFolder, app, open_study, print_totals, wanted_items

__all__ = ["plan", "status"]


@app.command()
def plan(study: StudyFolder, step: OneStep = 0, pilot: Pilot = 0) -> None:
    """Print what is left to ask; needs no GPU and no model. The last line is REMAINING_TOTAL=<n>."""
    from benchcheck.console import outdated, plan_table, tell
    from benchcheck.run.plan import survey

    opened = open_study(study, step)
    outdated(opened)
    state = survey(opened)
    tell(plan_table(state, step, wanted_items(opened, state, pilot)))
    print_totals(opened, state, step, pilot)


@app.command()
def status(study: StudyFolder) -> None:
    """Show where a study stands: the funnel, verdicts, failures and warnings."""
    from benchcheck.console import doubts, ending, outdated, tell, warn
    from benchcheck.report.noise import noise_lines
    from benchcheck.run.driver import summarize_all
    from benchcheck.run.plan import survey
    from benchcheck.study import Study

    opened = Study.open(study)
    outdated(opened)
    state = survey(opened)
    steps = summarize_all(opened, state)
    for table in ending(opened, state, steps):
        tell(table)
    for text in doubts(opened, state, steps):
        warn(text)
    for line in noise_lines(opened, state.pool):
        tell(line)
    print_totals(opened, state)
