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

// scriptedModel is the name of the model that answers with a case's texts.
const scriptedModel = "scripted"

// maxAsked bounds a request to the scripted model: the largest prompt, every byte of it escaped, and its schema.
const maxAsked = 4 << 20

// listen starts a chat endpoint on loopback that answers with the texts of a case. It reports no usage. stop ends it.
func listen(c *Case) (url string, stop func() error, err error) {
	l, err := loopback.Listen("127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("the scripted model cannot listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { answer(w, r, c) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	go server.Serve(l)
	return "http://" + l.Addr().String() + "/v1", server.Close, nil
}

// answer answers a request by the name of its schema, as package llm sends it.
func answer(w http.ResponseWriter, r *http.Request, c *Case) {
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
	text, known := map[string]string{"pgfsm_plan": c.Plan, "pgfsm_summary": c.Summary}[asked.ResponseFormat.JSONSchema.Name]
	if err != nil || !known {
		http.Error(w, "the scripted model knows plans and summaries only", http.StatusNotImplemented)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(canonical.MustMarshal(map[string]any{ // a client that has disconnected needs no answer
		"choices": []any{map[string]any{"finish_reason": "stop", "index": 0, "message": map[string]any{"content": text, "role": "assistant"}}},
		"created": 0, "id": "scripted", "model": scriptedModel, "object": "chat.completion",
	}))
}
