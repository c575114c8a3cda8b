// Package otlptest is a receiver of spans over OTLP/HTTP, for tests.
package otlptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Receiver takes spans. The test fails if a request is not one of OTLP/HTTP.
type Receiver struct {
	URL string

	mu     sync.Mutex
	all    []*traces.Span
	bodies bytes.Buffer
	header http.Header
	more   chan struct{} // closed when something came
}

// New starts a receiver.
func New(t testing.TB) *Receiver {
	r := &Receiver{more: make(chan struct{})}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if err := r.take(q); err != nil {
			t.Errorf("OTLP: %v", err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		answer, _ := proto.Marshal(&collector.ExportTraceServiceResponse{}) // has no fields
		_, _ = w.Write(answer)
	}))
	t.Cleanup(s.Close)
	r.URL = s.URL
	return r
}

func (r *Receiver) take(q *http.Request) error {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return err
	}
	spans, err := read(q, body)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all, r.header = append(r.all, spans...), q.Header
	r.bodies.Write(body)
	close(r.more)
	r.more = make(chan struct{})
	return nil
}

// read returns the spans of a request. The SDK encodes them; here only what our options decide is checked.
func read(q *http.Request, body []byte) (spans []*traces.Span, err error) {
	switch {
	case q.Method != http.MethodPost || q.URL.Path != "/v1/traces" || q.URL.RawQuery != "":
		return nil, fmt.Errorf("%s %s", q.Method, q.URL)
	case q.Header.Get("Content-Type") != "application/x-protobuf" || q.Header.Get("Content-Encoding") != "":
		return nil, fmt.Errorf("the content is %q, encoded as %q", q.Header.Get("Content-Type"), q.Header.Get("Content-Encoding"))
	}
	var all collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &all); err != nil {
		return nil, err
	}
	for _, of := range all.ResourceSpans {
		if text(of.GetResource().GetAttributes(), "service.name") == "" {
			return nil, errors.New("the resource has no service.name")
		}
		for _, scope := range of.ScopeSpans {
			spans = append(spans, scope.Spans...)
		}
	}
	for _, s := range spans {
		if s.DroppedAttributesCount+s.DroppedEventsCount+s.DroppedLinksCount > 0 {
			return nil, fmt.Errorf("parts of the span %q were dropped", s.Name)
		}
	}
	return spans, nil
}

// text returns the value of an attribute as text; "" if there is none.
func text(all []*common.KeyValue, key string) string {
	for _, kv := range all {
		if kv.Key != key {
			continue
		}
		if n, ok := kv.Value.GetValue().(*common.AnyValue_IntValue); ok {
			return fmt.Sprint(n.IntValue)
		}
		return kv.Value.GetStringValue()
	}
	return ""
}

// Attributes are the attributes of a span as text.
func Attributes(s *traces.Span) map[string]string {
	attributes := make(map[string]string)
	for _, kv := range s.Attributes {
		attributes[kv.Key] = text(s.Attributes, kv.Key)
	}
	return attributes
}

// Spans waits until n spans came, and returns all.
func (r *Receiver) Spans(t testing.TB, n int) []*traces.Span {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		r.mu.Lock()
		all, more := append([]*traces.Span(nil), r.all...), r.more
		r.mu.Unlock()
		if len(all) >= n {
			return all
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("%d spans came, not %d", len(all), n)
		}
	}
}

// Contains reports whether these bytes came.
func (r *Receiver) Contains(text string) bool { return strings.Contains(r.Bodies(), text) }

// Bodies returns all bytes that came.
func (r *Receiver) Bodies() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies.String()
}

// Header returns the headers of the last request.
func (r *Receiver) Header() http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.header.Clone()
}
