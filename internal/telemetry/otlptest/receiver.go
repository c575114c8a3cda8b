// Package otlptest is a strict receiver of spans over OTLP/HTTP, for tests.
package otlptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A Receiver takes spans. The test fails if a request is not what OTLP/HTTP and the data model of traces say.
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
	spans, err := Read(q, body)
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

// Read reads a request strictly.
func Read(q *http.Request, body []byte) (spans []*traces.Span, err error) {
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
	if err := checkFields(all.ProtoReflect()); err != nil {
		return nil, err
	}
	for _, of := range all.ResourceSpans {
		if text(of.GetResource().GetAttributes(), "service.name") == "" {
			return nil, errors.New("the resource has no service.name")
		}
		if err := attributes(of.Resource.Attributes); err != nil {
			return nil, err
		}
		for _, scope := range of.ScopeSpans {
			if scope.GetScope().GetName() == "" {
				return nil, errors.New("the scope has no name")
			}
			for _, s := range scope.Spans {
				if err := span(s); err != nil {
					return nil, fmt.Errorf("span %q: %w", s.Name, err)
				}
				spans = append(spans, s)
			}
		}
	}
	if len(spans) == 0 {
		return nil, errors.New("there is no span")
	}
	return spans, nil
}

// checkFields refuses fields that the protocol does not have, at any depth.
func checkFields(m protoreflect.Message) (err error) {
	if len(m.GetUnknown()) > 0 {
		return fmt.Errorf("%s has unknown fields", m.Descriptor().FullName())
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				err = errors.Join(err, checkFields(v.List().Get(i).Message()))
			}
		default:
			err = errors.Join(err, checkFields(v.Message()))
		}
		return err == nil
	})
	return err
}

// span checks the rules of the data model for one span.
func span(s *traces.Span) error {
	_, stateErr := trace.ParseTraceState(s.TraceState)
	switch {
	case !id(s.TraceId, 16) || !id(s.SpanId, 8):
		return fmt.Errorf("the ids %x %x", s.TraceId, s.SpanId)
	case len(s.ParentSpanId) > 0 && !id(s.ParentSpanId, 8) || bytes.Equal(s.ParentSpanId, s.SpanId):
		return fmt.Errorf("the parent %x", s.ParentSpanId)
	case s.Name == "" || s.Kind == traces.Span_SPAN_KIND_UNSPECIFIED:
		return fmt.Errorf("the kind %s", s.Kind)
	case s.StartTimeUnixNano == 0 || s.EndTimeUnixNano < s.StartTimeUnixNano:
		return fmt.Errorf("from %d to %d", s.StartTimeUnixNano, s.EndTimeUnixNano)
	case stateErr != nil:
		return stateErr
	case s.DroppedAttributesCount+s.DroppedEventsCount+s.DroppedLinksCount > 0:
		return errors.New("something was dropped")
	case s.GetStatus().GetMessage() != "" && s.Status.Code != traces.Status_STATUS_CODE_ERROR:
		return errors.New("only errors have a description")
	}
	for _, l := range s.Links {
		if !id(l.TraceId, 16) || !id(l.SpanId, 8) {
			return fmt.Errorf("the link to %x %x", l.TraceId, l.SpanId)
		}
	}
	return attributes(s.Attributes)
}

func id(b []byte, length int) bool { return len(b) == length && !bytes.Equal(b, make([]byte, length)) }

// attributes refuses keys that are empty or come twice, and values without a type.
func attributes(all []*common.KeyValue) error {
	seen := make(map[string]bool)
	for _, kv := range all {
		if kv.Key == "" || seen[kv.Key] || kv.GetValue().GetValue() == nil {
			return fmt.Errorf("the attribute %q = %v", kv.Key, kv.Value)
		}
		seen[kv.Key] = true
	}
	return nil
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
func (r *Receiver) Contains(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Contains(r.bodies.Bytes(), []byte(text))
}

// Header returns the headers of the last request.
func (r *Receiver) Header() http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.header.Clone()
}
