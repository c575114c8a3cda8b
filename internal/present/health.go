package present

// Health says whether a service can do its work. Each row is a stable name and what it means.
type Health struct {
	Reasons  []Row // why it cannot; none: it can
	Warnings []Row // what a ready service should tell
}

// Ready reports whether the service can do its work.
func (h *Health) Ready() bool { return len(h.Reasons) == 0 }
