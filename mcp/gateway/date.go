package gateway

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Dates are the values of the Date header. net/http would spell the time again for each answer, which it is good for a second.
type dates struct{ last atomic.Pointer[date] }

// A date is a second and how the header has it.
type date struct {
	second int64
	values []string
}

// at is the header's value at a time.
func (d *dates) at(now time.Time) []string {
	if last := d.last.Load(); last != nil && last.second == now.Unix() {
		return last.values
	}
	next := &date{now.Unix(), []string{now.UTC().Format(http.TimeFormat)}}
	d.last.Store(next)
	return next.values
}
