package gateway

import (
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// Bounds of the open questions to the client of one session.
const (
	maxQuestions    = 1000 // of one server
	maxOwnQuestions = 64   // of the gateway
)

// A question is a request to the client of a session that waits for its answer.
type question struct {
	link   *link          // link with the server that asks; nil: the gateway asks, and drops the answer
	id     jsontext.Value // the server's id
	method string
}

// openQuestions holds the open questions to the client of one session. The zero value is empty.
type openQuestions struct {
	mu   sync.Mutex
	byID map[string]*question // keyed by the gateway's id
	last uint64               // number of the newest question
}

// addQuestion registers a question and returns its id for the client. It reports false if too many
// of the same server are open.
func (o *openQuestions) addQuestion(q *question) (id jsontext.Value, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	limit, open := maxQuestions, 0
	if q.link == nil {
		limit = maxOwnQuestions
	}

	for _, other := range o.byID { // in any order: they are counted
		if other.link == q.link {
			open++
		}
	}

	if open >= limit {
		return nil, false
	}

	if o.byID == nil {
		o.byID = make(map[string]*question)
	}

	o.last++
	name := "pgfsm-" + strconv.FormatUint(o.last, 10)
	o.byID[name] = q

	return wire.Quote(name), true
}

// removeQuestion removes and returns the open question with this id; nil if there is none.
func (o *openQuestions) removeQuestion(id jsontext.Value) *question {
	name, _ := wire.Text(id) // no question has the empty name
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.byID[name]
	delete(o.byID, name)
	return q
}

// cancelQuestion removes the question that a server asked with this id, and returns the gateway's
// id; nil if it is not open.
func (o *openQuestions) cancelQuestion(l *link, id jsontext.Value) jsontext.Value {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, q := range o.byID { // in any order: one question has this id
		if q.link == l && string(q.id) == string(id) {
			delete(o.byID, name)
			return wire.Quote(name)
		}
	}
	return nil
}

// dropQuestions removes the questions of a server whose link has ended.
func (o *openQuestions) dropQuestions(l *link) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, q := range o.byID { // in any order: all are removed
		if q.link == l {
			delete(o.byID, name)
		}
	}
}
