package present

import (
	"pgfsm/internal/runner/explain"
)

// A Question asks what every gate would decide about a call that nobody makes.
type Question = explain.Question

// A QuestionError reports a fault in a [Question].
type QuestionError = explain.QuestionError

// An Explanation answers a [Question].
type Explanation struct {
	SchemaVersion int `json:"schema_version"`
	*explain.Explanation
}
