package fsm

import (
	"context"
	"testing"
)

func TestFlightOf(t *testing.T) {
	flown := &flight[int]{Context: context.Background()}
	type other struct{}
	tests := []struct {
		name string
		ctx  context.Context
		want *flight[int]
	}{
		{"the-flight-itself", flown, flown},
		{"wrapped", context.WithValue(flown, other{}, 1), flown},
		{"no-flight", context.Background(), nil},
		{"flight-of-another-subject", &flight[string]{Context: context.Background()}, nil},
	}
	free := Guard[int]{Name: "free", Why: "Nothing is against it.", Allow: func(int) error { return nil }}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := flightOf[int](test.ctx)
			if got != test.want || (err == nil) != (test.want != nil) {
				t.Errorf("flightOf = %v, %v, want %v", got, err, test.want)
			}
			if asked := free.ask(test.ctx); asked != (test.want != nil) {
				t.Errorf("ask = %v, want %v", asked, test.want != nil)
			}
		})
	}
}
