package present

// Health reports whether a service can do its work. Each row has a stable name and its meaning.
type Health struct {
	Reasons  []Row // causes that make the service unready; empty: it is ready
	Warnings []Row // problems that leave the service ready
}

// Ready reports whether the service can do its work.
func (h *Health) Ready() bool { return len(h.Reasons) == 0 }
