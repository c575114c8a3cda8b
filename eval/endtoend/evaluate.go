package endtoend

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
)

// An Agent takes one case, and returns the result.
type Agent func(context.Context, *Case) Side

// Evaluate takes every case that the book does not have yet through both agents, one agent after the other, jobs cases at the same
// time, and returns the runs of all cases, those of the book included. An interrupted case is not kept. done is called after each
// case; it may be nil.
func (b *Book) Evaluate(ctx context.Context, cases []Case, jobs int, safe, bare Agent, done func()) ([]Run, error) {
	runs, left := b.remaining(cases)
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(jobs, 1))
	for _, c := range left {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			r := Run{ID: c.ID, Case: c.Digest(), Safe: safe(ctx, c)}
			if ctx.Err() == nil {
				r.Naive = bare(ctx, c)
			}
			mu.Lock()
			defer mu.Unlock()
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := b.Append(r); err != nil {
				return err
			}
			runs = append(runs, r)
			if done != nil {
				done()
			}
			return nil
		})
	}
	err := group.Wait()
	return runs, err
}

// remaining are the runs of the book that belong to these cases, and the cases without a run.
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
