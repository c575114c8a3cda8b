package session

// A quota counts what clients hold, up to a limit for all together and one for each client.
type quota struct {
	all, each int
	taken     int
	byClient  map[Identity]int
}

func newQuota(total, perClient int) quota {
	return quota{all: total, each: perClient, byClient: make(map[Identity]int)}
}

// fits reports whether a client may hold n more.
func (q *quota) fits(client Identity, n int) bool {
	return q.taken+n <= q.all && q.byClient[client]+n <= q.each
}

// add counts n more, or fewer if n is negative.
func (q *quota) add(client Identity, n int) {
	q.taken += n
	if q.byClient[client] += n; q.byClient[client] == 0 {
		delete(q.byClient, client)
	}
}
