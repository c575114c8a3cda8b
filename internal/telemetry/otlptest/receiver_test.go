package otlptest_test

import (
	"net/http/httptest"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"pgfsm/internal/telemetry/otlptest"
	"pgfsm/internal/test/check"
)

// TestReceiverCanFail: the receiver refuses what OTLP/HTTP or the data model does not allow.
func TestReceiverCanFail(t *testing.T) {
	name := func(text string) []*common.KeyValue {
		return []*common.KeyValue{{Key: text, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: "x"}}}}
	}
	for _, tc := range []struct {
		name, path, content string
		change              func(*traces.ResourceSpans, *traces.Span)
		good                bool
	}{
		{"good", "", "", nil, true},
		{"other-path", "/", "", nil, false},
		{"json", "", "application/json", nil, false},
		{"no-service", "", "", func(r *traces.ResourceSpans, _ *traces.Span) { r.Resource = nil }, false},
		{"no-scope", "", "", func(r *traces.ResourceSpans, _ *traces.Span) { r.ScopeSpans[0].Scope = nil }, false},
		{"no-span", "", "", func(r *traces.ResourceSpans, _ *traces.Span) { r.ScopeSpans = nil }, false},
		{"zero-trace", "", "", func(_ *traces.ResourceSpans, s *traces.Span) { s.TraceId = make([]byte, 16) }, false},
		{"short-span", "", "", func(_ *traces.ResourceSpans, s *traces.Span) { s.SpanId = s.SpanId[:7] }, false},
		{"zero-parent", "", "", func(_ *traces.ResourceSpans, s *traces.Span) { s.ParentSpanId = make([]byte, 8) }, false},
		{"no-kind", "", "", func(_ *traces.ResourceSpans, s *traces.Span) { s.Kind = 0 }, false},
		{"ends-before-it-starts", "", "", func(_ *traces.ResourceSpans, s *traces.Span) { s.EndTimeUnixNano = 1 }, false},
		{"bad-state", "", "", func(_ *traces.ResourceSpans, s *traces.Span) { s.TraceState = "a" }, false},
		{"attribute-twice", "", "", func(_ *traces.ResourceSpans, s *traces.Span) { s.Attributes = append(name("a"), name("a")...) }, false},
		{"dropped", "", "", func(_ *traces.ResourceSpans, s *traces.Span) { s.DroppedAttributesCount = 1 }, false},
		{"bad-link", "", "", func(_ *traces.ResourceSpans, s *traces.Span) { s.Links = []*traces.Span_Link{{TraceId: s.TraceId}} }, false},
		{"unknown-field", "", "", func(_ *traces.ResourceSpans, s *traces.Span) { s.ProtoReflect().SetUnknown([]byte{0xf8, 0x7f, 1}) }, false},
		{"description-without-error", "", "", func(_ *traces.ResourceSpans, s *traces.Span) { s.Status = &traces.Status{Message: "x"} }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &traces.Span{
				TraceId: []byte("0123456789abcdef"), SpanId: []byte("01234567"), Name: "ping", Kind: traces.Span_SPAN_KIND_SERVER, StartTimeUnixNano: 2,
				EndTimeUnixNano: 3, Attributes: name("a"),
			}
			of := &traces.ResourceSpans{
				Resource:   &resource.Resource{Attributes: name("service.name")},
				ScopeSpans: []*traces.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "pgfsm"}, Spans: []*traces.Span{s}}},
			}
			if tc.change != nil {
				tc.change(of, s)
			}
			body, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*traces.ResourceSpans{of}})
			check.NoError(t, err)
			path, content := "/v1/traces", "application/x-protobuf"
			if tc.path != "" {
				path = tc.path
			}
			if tc.content != "" {
				content = tc.content
			}
			q := httptest.NewRequest("POST", path, nil)
			q.Header.Set("Content-Type", content)
			if _, err := otlptest.Read(q, body); (err == nil) != tc.good {
				t.Errorf("error %v", err)
			}
		})
	}
}
