package present

import "pgfsm/internal/canonical"

// A Reload describes the successful reload of a gateway's configuration.
type Reload struct {
	SchemaVersion int              `json:"schema_version"`
	Bundle        canonical.Digest `json:"bundle"`   // digest of the active bundle
	Previous      canonical.Digest `json:"previous"` // digest of the formerly active bundle
	Changed       []string         `json:"changed"`  // keys of the configuration whose new values are active
	Restart       []string         `json:"restart"`  // keys whose new values are not active before a restart
	Warnings      []string         `json:"warnings"`
	Tests         int              `json:"tests"` // number of passed tests in tests.yaml beside the policy
}
