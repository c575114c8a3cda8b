package endtoend

import (
	"context"
	"errors"
	"sync"
)

// An Agent takes one case and says what came of it.
type Agent func(context.Context, *Case) Side

// Evaluate takes every case that the book does not hold yet through both agents, one after the other, jobs cases at a
// time, and returns what came of all cases, those of the book among them. A case that was interrupted is not kept. done
// is told after each case; it may be nil.
func (b *Book) Evaluate(ctx context.Context, cases []Case, jobs int, safe, bare Agent, done func()) ([]Run, error) {
	runs, left := b.remaining(cases)
	var mu sync.Mutex
	var failed error
	one := func(c *Case) {
		r := Run{ID: c.ID, Case: c.Digest()}
		r.Safe = safe(ctx, c)
		if ctx.Err() == nil {
			r.Naive = bare(ctx, c)
		}
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil || failed != nil {
			return
		}
		if failed = b.Append(r); failed != nil {
			return
		}
		runs = append(runs, r)
		if done != nil {
			done()
		}
	}
	stopped := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return failed != nil || ctx.Err() != nil
	}
	next := make(chan *Case)
	var wg sync.WaitGroup
	for range max(1, min(jobs, len(left))) {
		wg.Go(func() {
			for c := range next {
				one(c)
			}
		})
	}
	for _, c := range left {
		if stopped() {
			break
		}
		next <- c
	}
	close(next)
	wg.Wait()
	return runs, errors.Join(failed, ctx.Err())
}

// remaining are the runs of the book that are of these cases, and the cases that have none.
func (b *Book) remaining(cases []Case) (runs []Run, left []*Case) {
	had := make(map[string]Run, len(b.Runs))
	for _, r := range b.Runs {
		had[r.ID] = r
	}
	for i := range cases {
		if r, ok := had[cases[i].ID]; ok && r.Case == cases[i].Digest() {
			runs = append(runs, r)
			continue
		}
		left = append(left, &cases[i])
	}
	return runs, left
}
