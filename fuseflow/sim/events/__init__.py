"""What happened in a run, firing by firing: what each waited for last, the critical path through them, and a timeline."""
