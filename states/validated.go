package states

import (
	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// validated authorizes the call by the operator's allowlist, pins and grants (INV-3). Where grants
// count the calls of a task, or risk rules and policies ask about calls before, it has them read
// first, and where they ask for it, where the arguments come from; with that the call takes its place among those that others find.
type validated struct{}

func (validated) Want(r *Run) Command {
	if c := historyWanted(r); c != nil {
		return c
	}
	return nil
}

// historyWanted returns the request for the facts about earlier calls that the decision needs; nil
// if it needs none.
func historyWanted(r *Run) *ReadHistory {
	f := r.facts.Validated
	queries := r.bundle.Queries(f.Server, f.Tool)
	task := r.request.Task != "" && r.bundle.Counts(f.Server, f.Tool)
	origins := r.bundle.ReadsOrigins() && r.request.HasSession()
	if len(queries) == 0 && !task && !origins {
		return nil
	}
	return &ReadHistory{Do: doReadHistory, Origins: origins, Queries: queries, Task: task}
}

func (validated) Judge(r *Run, ev Event) Judgement {
	f := r.facts.Validated
	fact := &AuthorizedFact{
		Arguments:  f.Arguments,
		Bundle:     r.bundle.Digest(),
		Definition: f.Definition,
		Plan:       f.Plan,
	}
	// Whatever was asked must be answered before the call is authorized.
	if query := historyWanted(r); query != nil {
		read, ok := ev.(*HistoryRead)
		if !ok || !read.answersCommand(query) {
			return failUnexpected(ev, NotSent)
		}
		fact.History, fact.history = canonical.Sum("history", canonical.MustSorted(read)), read
	}
	fact.Verdict = r.bundle.Authorize(f.tool, r.request.Identity, f.Definition, r.facts.Planned.plan.Args.Bytes(),
		fact.taskWithCalls(r.request.Task))
	if !fact.Verdict.Allows() {
		return blockRun(fact.Verdict)
	}
	return Judgement{Authorize, fact}
}

// answersCommand reports whether each query is answered, in order, and the origins are there.
func (e *HistoryRead) answersCommand(wanted *ReadHistory) bool {
	if len(e.Values) != len(wanted.Queries) || (e.Origins != nil) != wanted.Origins {
		return false
	}
	for i := range e.Values {
		if e.Values[i].Query() != wanted.Queries[i] {
			return false
		}
	}
	return true
}

// taskWithCalls returns the run's task with the calls that it had made when they were read; nil
// without a task.
func (f *AuthorizedFact) taskWithCalls(id string) *policy.Task {
	if id == "" {
		return nil
	}
	task := &policy.Task{ID: id}
	if f.history != nil {
		task.Calls = f.history.Calls
	}
	return task
}

// historyAnswers returns the facts about earlier calls that were read.
func (f *AuthorizedFact) historyAnswers() []policy.HistoryAnswer {
	if f.history == nil {
		return nil
	}
	return f.history.Values
}
