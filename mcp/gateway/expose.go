package gateway

import (
	"fmt"
	"slices"
	"strings"
)

// Expose is the set of server features that agents may use. The zero value is empty.
type Expose uint16

// Members of [Expose]. Each covers all MCP messages of its feature, in both directions.
const (
	ExposeTools         Expose = 1 << iota // tools/list, tools/call, list_changed of tools
	ExposeProgress                         // notifications/progress of calls and requests
	ExposeCancellation                     // notifications/cancelled, in both directions
	ExposeLogging                          // logging/setLevel, notifications/message
	ExposeResources                        // resources/*, with subscriptions and their notifications
	ExposePrompts                          // prompts/*
	ExposeCompletion                       // completion/complete
	ExposeSampling                         // the server sends requests to the client's model
	ExposeElicitation                      // the server sends requests to the client's user
	ExposeRoots                            // the server learns the client's folders
	ExposeInputRequired                    // results that ask for input, and the input in the next request
)

// DefaultExpose applies if the operator sets nothing.
const DefaultExpose = ExposeTools | ExposeProgress | ExposeCancellation | ExposeLogging

// exposeAll is the operator's word for all members.
const exposeAll = "all"

// exposeWords lists the operator's words, in the order of the bits.
var exposeWords = []string{
	"tools", "progress", "cancellation", "logging", "resources", "prompts", "completion", "sampling", "elicitation",
	"roots", "input_required",
}

// ExposeWords returns the words that [ParseExpose] accepts.
func ExposeWords() []string { return append(slices.Clone(exposeWords), exposeAll) }

// ParseExpose reads the operator's list. An empty list exposes nothing. An unknown or repeated word
// is an error.
func ParseExpose(words []string) (Expose, error) {
	var e Expose
	for i, w := range words {
		if slices.Contains(words[:i], w) {
			return 0, fmt.Errorf("%q comes twice", w)
		}
		if w == exposeAll {
			e |= 1<<len(exposeWords) - 1
			continue
		}
		bit := slices.Index(exposeWords, w)
		if bit < 0 {
			return 0, fmt.Errorf("%q cannot be exposed; what can be is %s", w, strings.Join(ExposeWords(), ", "))
		}
		e |= 1 << bit
	}
	return e, nil
}

// Includes reports whether e contains all members of part.
func (e Expose) Includes(part Expose) bool { return e&part == part }

// Words returns the set in the operator's words.
func (e Expose) Words() []string {
	words := []string{}
	for bit, w := range exposeWords {
		if e.Includes(1 << bit) {
			words = append(words, w)
		}
	}
	return words
}

func (e Expose) String() string { return strings.Join(e.Words(), ", ") }
