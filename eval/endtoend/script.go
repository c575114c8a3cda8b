package endtoend

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/canonical"
	"pgfsm/internal/web/loopback"
)

// ScriptedModel is the name of the model that a [Script] is.
const ScriptedModel = "scripted"

const (
	// maxAsked bounds a request to the scripted model: the largest prompt, every byte of it escaped, and its schema.
	maxAsked = 4 << 20
	// headerTimeout bounds how long a client may take to send the header of a request.
	headerTimeout = 10 * time.Second
)

// A Script is an OpenAI-compatible chat endpoint on loopback that answers with the texts of a case. It reports no usage. Close it.
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
	texts := map[string]string{"pgfsm_plan": c.Plan, "pgfsm_summary": c.Summary}
	s := &Script{
		url: "http://" + l.Addr().String() + "/v1", served: make(chan error, 1),
		server: &http.Server{
			Handler: answering(texts), ReadHeaderTimeout: headerTimeout, ErrorLog: log.New(io.Discard, "", 0),
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

// answering answers each request by the name of its schema, as package llm sends it. Any other request is an error.
func answering(texts map[string]string) http.Handler {
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
		text, known := texts[asked.ResponseFormat.JSONSchema.Name]
		if err != nil || !known {
			http.Error(w, "the scripted model knows plans and summaries only", http.StatusNotImplemented)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(completion(text)) // a client that has disconnected needs no answer
	})
	return mux
}

// completion is a chat completion with a text.
func completion(text string) []byte {
	return canonical.MustMarshal(map[string]any{
		"choices": []any{map[string]any{"finish_reason": "stop", "index": 0, "message": map[string]any{"content": text, "role": "assistant"}}},
		"created": 0, "id": "scripted", "model": ScriptedModel, "object": "chat.completion",
	})
}
