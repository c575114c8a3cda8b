package upstream

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A call is given up and its link closed: the server receives of the first before the second, for it may notice nothing else. One that
// does not listen keeps nobody for longer than a good-bye may take.
func TestWhatWasGivenUpIsToldBeforeTheEnd(t *testing.T) {
	for _, kind := range []string{onOneStream, onItsStream} {
		for _, deaf := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s-deaf-%t", kind, deaf), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newLinkFixture(t, kind, older, ignoreMessage)
					s.deaf = deaf
					c := s.call(t.Context(), ignoreMessage)
					<-c.over
					s.link.Close()
					grace := time.Duration(0)
					if deaf {
						grace = closeGrace
					}
					if took := time.Since(c.since); len(s.noted) > 0 == deaf || took != callTime+grace {
						t.Errorf("the server incoming %d notifications, and it took %s, want %s", len(s.noted), took, callTime+grace)
					}
				})
			})
		}
	}
}

// While a link that is being closed tells its server what was given up, nothing new is sent over it.
func TestNothingIsSentOverALinkThatIsBeingClosed(t *testing.T) {
	for _, kind := range []string{onOneStream, onItsStream} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLinkFixture(t, kind, older, ignoreMessage)
				s.deaf = true
				c := s.call(t.Context(), ignoreMessage)
				<-c.over
				go s.link.Close()
				synctest.Wait()
				r := s.link.Call(t.Context(), Call{Server: "s", Tool: "echo", Arguments: object(`{}`), RunID: newRun(),
					Listing: s.link.u.moments.Add(1)}, ignoreMessage)
				if r.Effect != EffectNotSent || r.Code != CodeClosed {
					t.Errorf("Call() = %+v, want nothing sent, %s", r, CodeClosed)
				}
			})
		})
	}
}
