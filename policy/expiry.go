package policy

import "pgfsm/policy/condition"

// expiryAfter adds milliseconds, rounded down to whole seconds, to a time in [TimeForm]. It returns
// an empty time, which as an expiry is in the past, for another form and beyond four-digit years.
func expiryAfter(now string, ms int64) string {
	if ms <= 0 {
		return ""
	}
	return condition.Later(now, ms/1000)
}
