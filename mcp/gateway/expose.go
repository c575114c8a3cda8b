package gateway

import (
	"fmt"
	"slices"
	"strings"
)

// Expose is the set of what agents may use of a server. The zero value is empty.
type Expose uint16

// Members of [Expose]. Each stands for everything of MCP that belongs to it, in both directions.
const (
	ExposeTools         Expose = 1 << iota // tools/list, tools/call, list_changed of tools
	ExposeProgress                         // notifications/progress of calls and requests
	ExposeCancellation                     // notifications/cancelled, in both directions
	ExposeLogging                          // logging/setLevel, notifications/message
	ExposeResources                        // resources/*, with subscriptions and their notifications
	ExposePrompts                          // prompts/*
	ExposeCompletion                       // completion/complete
	ExposeSampling                         // the server asks the client's model
	ExposeElicitation                      // the server asks the client's user
	ExposeRoots                            // the server is told of the client's folders
	ExposeInputRequired                    // results that ask for input, and the input that follows them
)

// DefaultExpose is exposed if the operator says nothing.
const DefaultExpose = ExposeTools | ExposeProgress | ExposeCancellation | ExposeLogging

// exposeAll is the operator's word for all members.
const exposeAll = "all"

// exposeWords are the operator's words, in the order of the bits.
var exposeWords = []string{
	"tools", "progress", "cancellation", "logging", "resources", "prompts", "completion", "sampling", "elicitation", "roots", "input_required",
}

// ExposeWords are the words that [ParseExpose] knows.
func ExposeWords() []string { return append(slices.Clone(exposeWords), exposeAll) }

// ParseExpose reads the operator's list. An empty list exposes nothing. An unknown or repeated word is an error.
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

// Includes reports whether the set contains all of part.
func (e Expose) Includes(part Expose) bool { return e&part == part }

// Words is the set as the operator would write it.
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
