package endtoend

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"pgfsm/loopback"
	"pgfsm/policy/canonical"
)

// ScriptedModel is the name of the model that a [Script] is.
const ScriptedModel = "scripted"

const (
	// maxAsked bounds a request to the scripted model: the largest prompt, every byte of it escaped, and its schema.
	maxAsked = 4 << 20
	// headerTimeout bounds how long a client may take to send the header of a request.
	headerTimeout = 10 * time.Second
)

// A Script is an OpenAI-compatible chat endpoint on loopback that says what a case has written down for it. It claims no
// usage: tokens that nobody counted are not reported. Close it.
type Script struct {
	server *http.Server
	url    string
	served chan error
}

// Listen starts the endpoint for one case.
func Listen(c *Case) (*Script, error) {
	l, err := loopback.Listen("127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the scripted model cannot listen: %w", err)
	}
	says := map[string]string{"pgfsm_plan": c.Plan, "pgfsm_summary": c.Summary}
	s := &Script{
		url: "http://" + l.Addr().String() + "/v1", served: make(chan error, 1),
		server: &http.Server{
			Handler: answering(says), ReadHeaderTimeout: headerTimeout, ErrorLog: log.New(io.Discard, "", 0),
		},
	}
	go func() { s.served <- s.server.Serve(l) }()
	return s, nil
}

// URL is the base URL, as a configuration names it.
func (s *Script) URL() string { return s.url }

// Close stops the endpoint.
func (s *Script) Close() error {
	err := s.server.Close()
	<-s.served
	return err
}

// answering says, for each kind of answer that is asked for by the name of its schema, the words of the script. What is
// asked without one, or otherwise than package llm asks, is an error: nothing is guessed.
func answering(says map[string]string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ResponseFormat struct {
				JSONSchema struct {
					Name string `json:"name"`
				} `json:"json_schema"`
			} `json:"response_format"`
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAsked))
		if err == nil {
			err = json.Unmarshal(body, &asked)
		}
		words, known := says[asked.ResponseFormat.JSONSchema.Name]
		if err != nil || !known {
			http.Error(w, "the scripted model knows plans and summaries only", http.StatusNotImplemented)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(spoken(words)) // a client that has gone needs no answer
	})
	return mux
}

// spoken is a chat completion that says a text.
func spoken(words string) []byte {
	type message struct {
		Content string `json:"content"`
		Role    string `json:"role"`
	}
	type choice struct {
		FinishReason string  `json:"finish_reason"`
		Index        int     `json:"index"`
		Message      message `json:"message"`
	}
	return canonical.MustMarshal(struct {
		Choices []choice `json:"choices"`
		Created int      `json:"created"`
		ID      string   `json:"id"`
		Model   string   `json:"model"`
		Object  string   `json:"object"`
	}{[]choice{{"stop", 0, message{words, "assistant"}}}, 0, "scripted", ScriptedModel, "chat.completion"})
}
