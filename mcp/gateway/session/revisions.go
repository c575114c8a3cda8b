package session

// Stateless is the first revision of MCP without sessions. Its requests declare everything in their
// _meta.
const Stateless = "2026-07-28"

// StatefulRevisions are the revisions with sessions that the gateway speaks, the newest first.
var StatefulRevisions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// Revisions returns all revisions that the gateway speaks, the newest first.
func Revisions() []string { return append([]string{Stateless}, StatefulRevisions...) }
