package config

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// checkPattern checks an RE2 pattern. The minimum length already refuses the empty pattern, which would match everything.
func checkPattern(s string) fault {
	if _, err := regexp.Compile(s); err != nil {
		return fault{"is not RE2: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "),
			"see https://github.com/google/re2/wiki/Syntax; in double quotes a backslash is written twice"}
	}
	return fault{}
}

func checkPath(s string) fault {
	if strings.HasPrefix(s, "~") {
		return fault{"begins with ~, which is not expanded", "write the whole path, or one from the folder of this file"}
	}
	return fault{}
}

func checkReferences(s string) fault {
	_, f := splitReferences(s)
	return f
}

// checkURL checks the URL of a server. No message repeats the URL, because it may contain a password.
func checkURL(s string) fault {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "" || strings.ContainsAny(s, " \\"):
		return fault{"is not a URL with a host", ""}
	case u.User != nil:
		return fault{"holds a user name or password", "put the secret into headers or api_key, as a reference"}
	case u.Fragment != "" || strings.Contains(s, "#"):
		return fault{"has a fragment", "remove # and what stands behind it"}
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fault{"has a port that is not 1 to 65535", ""}
		}
	}
	return fault{}
}

// checkHookURL checks the URL of a web hook, or another to which secrets are sent.
func checkHookURL(s string) fault {
	if f := checkURL(s); f != (fault{}) {
		return f
	}
	if u, err := url.Parse(s); err != nil || u.Scheme != "https" && !loopback(u) {
		return fault{"is http and leaves this machine", "write https"}
	}
	return fault{}
}

// checkResource checks a resource identifier (RFC 8707, section 2). The empty one means none.
func checkResource(s string) fault {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return fault{}
	case err != nil || !u.IsAbs() || strings.Contains(s, "#"):
		return fault{"is not an absolute URI without a fragment", ""}
	}
	return checkShown(s)
}

// checkBaseURL checks the base URL of a model. Requests append to its path, so it must not have a query or fragment.
func checkBaseURL(s string) fault {
	if f := checkURL(s); f != (fault{}) {
		return f
	}
	if strings.Contains(s, "?") {
		return fault{"has a query", "remove ? and what stands behind it"}
	}
	if strings.HasSuffix(strings.TrimRight(s, "/"), "/chat/completions") {
		return fault{"ends in /chat/completions, which is put behind it", "remove that"}
	}
	return fault{}
}

// loopback reports whether a URL stays on this machine.
func loopback(u *url.URL) bool {
	if strings.EqualFold(u.Hostname(), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback()
}

// transportHeaders are set by the transport (RFC 9110, RFC 9112, MCP); other values would break it.
var transportHeaders = []string{
	"accept", "connection", "content-length", "content-type", "host", "last-event-id", "te", "trailer",
	"transfer-encoding", "upgrade", "mcp-",
}

func checkHeaderName(s string) fault {
	low := strings.ToLower(s)
	for _, name := range transportHeaders {
		if low == name || strings.HasSuffix(name, "-") && strings.HasPrefix(low, name) {
			return fault{"is set by the transport", "remove it"}
		}
	}
	return fault{}
}
