package identity_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/identity"
	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/test/check"
	"pgfsm/internal/web"
	"pgfsm/policy"
)

// TestActors is the table of docs/operate/identity.md: who is the actor of a request.
func TestActors(t *testing.T) {
	fixture := newFixture(t)
	for _, tc := range []struct {
		name                        string
		claims                      claims
		kind, id, client, forPerson string
	}{
		{"client-of-people", claims{"client_id": "cli"}, policy.ActorPerson, "alice", "cli", ""},
		{"other-client", nil, policy.ActorAgent, "alice", "agent-1", ""},
		{"client-itself", claims{"sub": "agent-1"}, policy.ActorAgent, "agent-1", "agent-1", ""},
		{"agent-for-a-person", claims{"act": claims{"sub": "robot"}}, policy.ActorAgent, "robot", "agent-1", "alice"},
		{"client-in-azp", claims{"client_id": nil, "azp": "a"}, policy.ActorAgent, "alice", "a", ""},
		{"client-of-okta", claims{"client_id": nil, "cid": "b"}, policy.ActorAgent, "alice", "b", ""},
		{"client-of-people-in-other-letters", claims{"client_id": "CLI"}, policy.ActorAgent, "alice", "CLI", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := fixture.agent(t, fixture.Sign(tc.claims))
			check.NoError(t, err)
			want := &policy.Identity{Kind: tc.kind, Client: tc.client, Credential: &policy.Credential{Key: "key-1"}}
			if tc.forPerson != "" {
				want.OnBehalfOf = policy.SubjectName(fixture.Issuer, tc.forPerson)
			}
			if diff := cmp.Diff(want, c.Identity); diff != "" || c.Name != policy.SubjectName(fixture.Issuer, tc.id) || c.Token != "" || len(c.Roles) != 0 ||
				!c.Expires.Equal(fixture.clock.Add(fixture.Life)) {
				t.Errorf("caller %+v, identity %s", c, diff)
			}
		})
	}
}

// TestSubjectClaim: Entra ID gives a person another sub for each application. Without another claim, an agent's person could approve at the console.
func TestSubjectClaim(t *testing.T) {
	fixture := newFixture(t, func(i *identity.Issuer) { i.Subject = "/user/oid" })
	user := func(oid any) claims { return claims{"oid": oid} }
	for _, tc := range []struct {
		name          string
		claims        claims
		id, forPerson string // an empty id: refused
	}{
		{"agent", claims{"user": user("o-1")}, "o-1", ""},
		{"agent-for-a-person", claims{"user": user("o-1"), "act": claims{"sub": "robot", "user": user("o-2")}}, "o-2", "o-1"},
		{"agent-without-the-claim-for-a-person", claims{"user": user("o-1"), "act": claims{"sub": "robot"}}, "", ""},
		{"missing", nil, "", ""},
		{"number", claims{"user": user(7)}, "", ""},
		{"with-a-space", claims{"user": user("o 1")}, "", ""},
		{"without-sub", claims{"sub": nil, "user": user("o-1")}, "o-1", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := fixture.agent(t, fixture.Sign(tc.claims))
			if tc.id == "" {
				if !refused(err) {
					t.Errorf("caller %+v, error %v", c, err)
				}
				return
			}
			behind := ""
			if tc.forPerson != "" {
				behind = policy.SubjectName(fixture.Issuer, tc.forPerson)
			}
			if err != nil || c.Name != policy.SubjectName(fixture.Issuer, tc.id) || c.Identity.OnBehalfOf != behind {
				t.Errorf("caller %+v for %+v, error %v", c, c.Identity, err)
			}
		})
	}
	raw := fixture.Sign(claims{"sub": "pairwise-2", "user": user("o-1"), "aud": "cli", "client_id": nil, "nonce": "n"}, identitytest.Type("JWT"))
	if c, _, err := fixture.providers.IDToken(t.Context(), fixture.Issuer, "cli", raw, "n"); err != nil || c.Name != policy.SubjectName(fixture.Issuer, "o-1") {
		t.Errorf("the id token of the same person: %+v, %v", c, err)
	}
}

// TestDisplay: the display name is a string, of the same token or act as the subject, and is escaped and bounded.
func TestDisplay(t *testing.T) {
	fixture := newFixture(t, func(i *identity.Issuer) { i.Display = "/email" })
	long := strings.Repeat("x", 300)
	for _, tc := range []struct {
		name           string
		claims         claims
		own, forPerson string
	}{
		{"agent", claims{"email": "ci@example.com"}, "ci@example.com", ""},
		{"agent-for-a-person", claims{"email": "alice@example.com", "act": claims{"sub": "robot", "email": "ci@example.com"}}, "ci@example.com", "alice@example.com"},
		{"agent-without-a-name-for-a-person", claims{"email": "alice@example.com", "act": claims{"sub": "robot"}}, "", "alice@example.com"},
		{"missing", nil, "", ""},
		{"list", claims{"email": []string{"alice@example.com"}}, "", ""},
		{"blank", claims{"email": " \u200b"}, "", ""},
		{"hidden-characters", claims{"email": "al\u202eice\n"}, `al\u202eice\u000a`, ""},
		{"long", claims{"email": long}, long[:256] + "…", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := fixture.agent(t, fixture.Sign(tc.claims))
			if err != nil || c.Identity.Display != tc.own || c.Identity.OnBehalfOfDisplay != tc.forPerson {
				t.Errorf("display names %q and %q, error %v, want %q and %q", c.Identity.Display, c.Identity.OnBehalfOfDisplay, err, tc.own, tc.forPerson)
			}
		})
	}
}

// TestGroups: a list that is not exactly one of groups makes all of them unknown.
func TestGroups(t *testing.T) {
	numbered := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("g%03d", i))
		}
		return all
	}
	roles := func(value any) claims { return claims{"realm_access": claims{"roles": value}} }
	with := func(name string, value any) claims {
		c := roles([]string{"owners"})
		c[name] = value
		return c
	}
	known := func(groups ...string) *[]string { return &groups }
	fixture := newFixture(t)
	for _, tc := range []struct {
		name   string
		claims claims
		want   *[]string // nil: unknown
	}{
		{"sorted-without-duplicates", roles([]string{"b", "a", "b"}), known("a", "b")},
		{"none", roles([]string{}), &[]string{}},
		{"umlauts-and-spaces", roles([]string{"Führung Süd"}), known("Führung Süd")},
		{"another-alphabet-is-another-group", roles([]string{"\u043ewners"}), known("\u043ewners")},
		{"200-groups", roles(numbered(200)), known(numbered(200)...)},
		{"201-groups", roles(numbered(201)), nil},
		{"missing", nil, nil},
		{"elsewhere", claims{"roles": []string{"owners"}}, nil},
		{"null", roles(nil), nil},
		{"path-through-a-list", claims{"realm_access": []any{claims{"roles": []string{"owners"}}}}, nil},
		{"number-among-them", roles([]any{"owners", 7}), nil},
		{"256-bytes", roles([]string{strings.Repeat("a", 256)}), known(strings.Repeat("a", 256))},
		{"257-bytes", roles([]string{strings.Repeat("a", 257)}), nil},
		{"new-line", roles([]string{"owners\n"}), nil},
		{"right-to-left-override", roles([]string{"\u202eowners"}), nil},
		{"wide-letters", roles([]string{"\uff4fwners"}), nil},
		{"decomposed-letters", roles([]string{"Fu\u0308hrung"}), nil},
		{"overflow-of-entra", with("_claim_names", claims{"groups": "src1"}), nil},
		{"overflow-of-entra-implicit", with("hasgroups", true), nil},
		{"overflow-of-entra-in-a-name", with("groups:src1", "https://graph.example.com"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := fixture.agent(t, fixture.Sign(tc.claims))
			check.NoError(t, err)
			if diff := cmp.Diff(tc.want, c.Identity.Groups); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("no-pointer", func(t *testing.T) {
		fixture := newFixture(t, func(i *identity.Issuer) { i.Groups = "" })
		if c, err := fixture.agent(t, fixture.Sign(roles([]string{"owners"}))); err != nil || c.Identity.Groups != nil {
			t.Errorf("%+v, %v", c.Identity, err)
		}
	})
	t.Run("pointer-with-escapes", func(t *testing.T) {
		fixture := newFixture(t, func(i *identity.Issuer) { i.Groups = "/https:~1~1example.com~1groups" })
		if c, err := fixture.agent(t, fixture.Sign(claims{"https://example.com/groups": []string{"owners"}})); err != nil || !c.Identity.InGroup("owners") {
			t.Errorf("%+v, %v", c.Identity, err)
		}
	})
}

func TestClaims(t *testing.T) {
	fixture := newFixture(t)
	for _, tc := range []struct {
		name       string
		department any
		known      bool
	}{
		{"text", "sales", true}, {"empty", "", true}, {"256-bytes", strings.Repeat("d", 256), true}, {"257-bytes", strings.Repeat("d", 257), false},
		{"number", 7, false}, {"list", []string{"sales"}, false}, {"missing", nil, false}, {"new-line", "sales\n", false}, {"invisible", "sa\u200bles", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := fixture.agent(t, fixture.Sign(claims{"department": tc.department, "org": claims{"team": "emea"}}))
			check.NoError(t, err)
			want := []policy.Claim{{Name: "team", Value: "emea"}}
			if tc.known {
				want = slices.Insert(want, 0, policy.Claim{Name: "department", Value: tc.department.(string)})
			}
			if diff := cmp.Diff(want, c.Identity.Claims); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestScopes(t *testing.T) {
	for _, tc := range []struct {
		name    string
		claims  claims
		missing []string
	}{
		{"text", claims{"scope": "openid mcp:tools mcp:read"}, nil},
		{"list-of-okta", claims{"scp": []string{"mcp:tools", "mcp:read"}}, nil},
		{"text-of-entra", claims{"scp": "mcp:tools mcp:read"}, nil},
		{"one-missing", claims{"scope": "mcp:tools"}, []string{"mcp:read"}},
		{"none", nil, []string{"mcp:tools", "mcp:read"}},
		{"other-letters", claims{"scope": "MCP:TOOLS mcp:read"}, []string{"mcp:tools"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fixture := newFixture(t)
			fixture.scopes = []string{"mcp:tools", "mcp:read"}
			c, err := fixture.agent(t, fixture.Sign(tc.claims))
			var lacks *web.ScopeError
			switch {
			case tc.missing == nil:
				if err != nil || c.Name == "" {
					t.Error(err)
				}
			case !errors.As(err, &lacks) || !slices.Equal(lacks.Missing, tc.missing) || lacks.Caller.Name != policy.SubjectName(fixture.Issuer, "alice") || c.Name != "":
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
}

// TestRequestsWithoutAToken leaves the ledger's tokens, and requests without any, to other authenticators.
func TestRequestsWithoutAToken(t *testing.T) {
	fixture := newFixture(t)
	for _, header := range []string{"", "Basic YTpi", "Bearer pgfsm_0123", "DPoP e30.e30.AAAA"} {
		r := request("")
		r.Header.Set("Authorization", header)
		agents := fixture.providers.Agents(func(*http.Request) []string { return []string{endpoint} }, nil)
		if _, err := agents.Authenticate(r); !errors.Is(err, web.ErrNoCredentials) {
			t.Errorf("gateway, %q: %v", header, err)
		}
		if _, err := fixture.providers.People(admin, nil).Authenticate(r); !errors.Is(err, web.ErrNoCredentials) {
			t.Errorf("admin address, %q: %v", header, err)
		}
	}
}

// TestNoEndpoint: an empty audience is none, also for a request without an endpoint.
func TestNoEndpoint(t *testing.T) {
	fixture := newFixture(t)
	agents := fixture.providers.Agents(func(*http.Request) []string { return []string{""} }, nil)
	if _, err := agents.Authenticate(request(fixture.Sign(claims{"aud": []string{""}}))); !refused(err) {
		t.Error(err)
	}
}

// TestPeople: the admin address and the gateway refuse each other's tokens, and agents do not become people by a mistake in the audiences.
func TestPeople(t *testing.T) {
	same := func(i *identity.Issuer) {
		i.Audiences = identity.Audiences{MCP: []string{"both"}, Admin: []string{"both"}}
	}
	owner := claims{"roles": []string{"owners"}}
	for _, tc := range []struct {
		name          string
		claims        claims
		change        func(*identity.Issuer)
		person, agent bool // accepted at the admin address, at the gateway
	}{
		{"person-for-the-admin-address", claims{"client_id": "cli", "aud": admin}, nil, true, false},
		{"person-for-the-gateway", claims{"client_id": "cli", "aud": endpoint}, nil, false, true},
		{"agent-for-the-gateway", claims{"aud": "mcp-gateway"}, nil, false, true},
		{"agent-for-the-admin-address", claims{"aud": admin}, nil, false, false},
		{"agent-for-a-person-at-the-admin-address", claims{"aud": admin, "act": claims{"sub": "robot"}}, nil, false, false},
		{"client-of-people-with-act", claims{"client_id": "cli", "aud": admin, "act": claims{"sub": "robot"}}, nil, false, false},
		{"agent-with-an-audience-of-both", claims{"aud": "both"}, same, false, true},
		{"person-with-an-audience-of-both", claims{"client_id": "cli", "aud": "both"}, same, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var fixture *fixture
			if tc.change == nil {
				fixture = newFixture(t)
			} else {
				fixture = newFixture(t, tc.change)
			}
			tc.claims["realm_access"] = owner
			token := fixture.Sign(tc.claims)
			c, err := fixture.person(t, token)
			if (err == nil) != tc.person || !tc.person && !refused(err) || tc.person && !slices.Equal(c.Roles, []string{"approver"}) {
				t.Errorf("admin address: %+v, %v", c, err)
			}
			if c, err = fixture.agent(t, token); (err == nil) != tc.agent || !tc.agent && !refused(err) || len(c.Roles) > 0 {
				t.Errorf("gateway: %+v, %v", c, err)
			}
		})
	}
}

func TestIDTokens(t *testing.T) {
	fixture := newFixture(t)
	signedIn := fixture.clock.Add(-time.Minute)
	for _, tc := range []struct {
		name   string
		claims claims
		typ    string
		nonce  string
		good   bool
	}{
		{"code-flow", nil, "JWT", "n-1", true},
		{"of-keycloak", claims{"typ": "ID", "azp": "cli"}, "JWT", "n-1", true},
		{"several-audiences", claims{"aud": []string{"cli", "other"}, "azp": "cli"}, "JWT", "n-1", true},
		{"several-audiences-without-azp", claims{"aud": []string{"cli", "other"}}, "JWT", "n-1", false},
		{"another-authorized-party", claims{"azp": "agent-1"}, "JWT", "n-1", false},
		{"another-client", claims{"aud": "agent-1"}, "JWT", "n-1", false},
		{"another-nonce", claims{"nonce": "n-2"}, "JWT", "n-1", false},
		{"no-nonce", claims{"nonce": nil}, "JWT", "n-1", false},
		{"nonce-number", claims{"nonce": 1}, "JWT", "1", false},
		{"another-issuer", claims{"iss": "https://login.example.net"}, "JWT", "n-1", false},
		{"expired", claims{"iat": after(-time.Hour), "exp": after(-time.Minute)}, "JWT", "n-1", false},
		{"access-token", nil, "at+jwt", "n-1", false},
		{"access-token-of-keycloak", claims{"typ": "Bearer"}, "JWT", "n-1", false},
		{"logout-token", claims{"events": claims{}}, "JWT", "n-1", false},
		{"act", claims{"act": claims{"sub": "robot"}}, "JWT", "n-1", false},
		{"bad-subject", claims{"sub": "bob "}, "JWT", "n-1", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := claims{"sub": "bob", "aud": "cli", "client_id": nil, "nonce": "n-1", "auth_time": signedIn.Unix(), "jti": "id-1", "realm_access": claims{"roles": []string{"owners"}}}
			for name, value := range tc.claims { // in any order
				all[name] = value
			}
			raw := fixture.Sign(all, identitytest.Type(tc.typ))
			in, at, err := fixture.providers.IDToken(t.Context(), fixture.Issuer, "cli", raw, tc.nonce)
			fixture.silent(t, raw, err)
			if (err == nil) != tc.good {
				t.Fatal(err)
			}
			if !tc.good {
				return
			}
			want := web.Caller{Name: policy.SubjectName(fixture.Issuer, "bob"), Expires: time.Unix(after(fixture.Life), 0),
				Identity: &policy.Identity{Kind: policy.ActorPerson, Client: "cli", Credential: &policy.Credential{ID: "id-1", Key: "key-1"}, Groups: &[]string{"owners"}}}
			if diff := cmp.Diff(want, in); diff != "" || !at.Equal(signedIn) {
				t.Error(at, diff)
			}
		})
	}
	raw := fixture.Sign(claims{"aud": "agent-1"}, identitytest.Type("JWT"))
	if _, _, err := fixture.providers.IDToken(t.Context(), fixture.Issuer, "agent-1", raw, ""); !refused(err) {
		t.Error("the sign-in of a client that is not one of people:", err)
	}
}

func TestEndpoints(t *testing.T) {
	fixture := newFixture(t)
	got, err := fixture.providers.Endpoints(t.Context(), fixture.Issuer)
	want := identity.Endpoints{Authorization: fixture.Issuer + "/authorize", Token: fixture.Issuer + "/token", DeviceAuthorization: fixture.Issuer + "/device_authorization",
		NamesIssuer: true}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := fixture.providers.Endpoints(t.Context(), "https://login.example.net"); !refused(err) {
		t.Error("an issuer that is not configured:", err)
	}
}

func TestTokenTypes(t *testing.T) {
	for _, tc := range []struct {
		configured []string
		typ        any
		good       bool
	}{
		{[]string{"at+jwt"}, "at+jwt", true}, {[]string{"at+jwt"}, "JWT", false}, {[]string{"at+jwt"}, nil, false},
		{[]string{"application/AT+JWT"}, "at+jwt", true}, {[]string{"jwt"}, "JWT", true}, {[]string{"okta-internal-at+jwt"}, "okta-internal-at+jwt", true},
	} {
		fixture := newFixture(t, func(i *identity.Issuer) { i.TokenTypes = tc.configured })
		if _, err := fixture.agent(t, fixture.Sign(nil, identitytest.Header("typ", tc.typ))); (err == nil) != tc.good || !tc.good && !refused(err) {
			t.Errorf("%v, typ %v: %v", tc.configured, tc.typ, err)
		}
	}
}
