package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// answerWithin is how long a caller waits for one answer. Nothing that is measured comes near it.
const answerWithin = 60 * time.Second

// reviveWait is how long a connection is looked at that may have been closed. The end, if it came, is there already.
const reviveWait = 2 * time.Millisecond

// A door is where callers come: a host, a path, and the token they show.
type door struct {
	host   string // 127.0.0.1:PORT
	path   string // /mcp
	token  string // bearer; empty: none
	joined string // what stands before the names of tools here; empty: nothing
}

// tool is how a kind's tool is called here.
func (d door) tool(k kind) string { return d.joined + k.tool }

// protocol is the revision that callers speak.
const protocol = "2025-11-25"

// A caller is one MCP session of one client over one connection, written by hand: a client library costs more than what is
// measured. It does one call after the other.
type caller struct {
	door
	number  uint64 // no other caller of this process has it
	conn    net.Conn
	in      *bufio.Reader
	session string
	body    []byte // of the last response
	last    uint64 // id of the last request
	asked   request
}

var callers atomic.Uint64

// firstID makes all ids ten digits long, so that a request keeps its length.
const firstID = 1_000_000_000

// plain opens a session that costs next to nothing.
func plain(at door) (client, error) {
	c, err := open(at)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// open connects and takes the handshake to its end.
func open(at door) (*caller, error) {
	c := &caller{door: at, number: callers.Add(1), last: firstID}
	if err := c.dial(); err != nil {
		return nil, err
	}
	hello, err := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":%q,`+
		`"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`, c.id(), protocol))
	if err == nil && !bytes.Contains(hello.message, []byte(`"protocolVersion":"`+protocol+`"`)) {
		err = fmt.Errorf("initialize was answered with status %d: %.300q", hello.status, c.body)
	}
	if err == nil {
		if c.session = hello.session; c.session == "" {
			err = errors.New("initialize opened no session")
		}
	}
	if err == nil {
		var told response
		told, err = c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		if err == nil && told.status != 202 {
			err = fmt.Errorf("notifications/initialized was answered with status %d: %.300q", told.status, c.body)
		}
	}
	if err != nil {
		c.hangUp()
		return nil, err
	}
	return c, nil
}

func (c *caller) id() uint64 { c.last++; return c.last }

func (c *caller) dial() (err error) {
	if c.conn, err = net.Dial("tcp", c.host); err != nil {
		return err
	}
	c.in = bufio.NewReaderSize(c.conn, 64<<10)
	return nil
}

func (c *caller) hangUp() {
	if c.conn != nil {
		c.conn.Close()
	}
}

// revive connects anew if the other side has closed the connection in between, as it may. It is asked before a turn, not within.
func (c *caller) revive() error {
	if err := c.conn.SetReadDeadline(time.Now().Add(reviveWait)); err != nil {
		return err
	}
	_, err := c.in.Peek(1)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return c.conn.SetReadDeadline(time.Time{})
	}
	if err == nil {
		return errors.New("the other side said something unasked")
	}
	c.hangUp()
	return c.dial()
}

// head writes the head of a request.
func (c *caller) head(method string, length int) []byte {
	b := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, c.path, c.host)
	b = append(b, "Accept: application/json, text/event-stream\r\n"...)
	if c.token != "" {
		b = fmt.Appendf(b, "Authorization: Bearer %s\r\n", c.token)
	}
	if c.session != "" {
		b = fmt.Appendf(b, "Mcp-Session-Id: %s\r\nMcp-Protocol-Version: %s\r\n", c.session, protocol)
	}
	if method == "POST" {
		b = fmt.Appendf(b, "Content-Type: application/json\r\nContent-Length: %d\r\n", length)
	}
	return append(b, "\r\n"...)
}

func (c *caller) post(message string) (response, error) {
	return c.exchange(append(c.head("POST", len(message)), message...), nil)
}

// end ends the session and hangs up.
func (c *caller) end() error {
	defer c.hangUp()
	gone, err := c.exchange(c.head("DELETE", 0), nil)
	if err == nil && gone.status/100 != 2 {
		err = fmt.Errorf("DELETE was answered with status %d: %.300q", gone.status, c.body)
	}
	return err
}

// exchange writes a request and reads its response, of which the message has this id member, if one is given.
func (c *caller) exchange(request, id []byte) (response, error) {
	if _, err := c.conn.Write(request); err != nil {
		return response{}, err
	}
	r, err := c.read(id)
	if err == nil && r.closes {
		c.hangUp()
		err = c.dial()
	}
	return r, err
}

// A request is written once for each caller and kind. What changes from call to call keeps its length.
type request struct {
	kind
	bytes []byte
	id    [2]int // where the id stands
	token [2]int // where the token stands
	want  []byte // what the text of the answer must be; its first tokenBytes are the token
}

// tokenBytes is how long the text is that makes one call differ from every other.
const tokenBytes = 32

// text is what one call says, and no other.
func text(caller, call uint64) []byte { return fmt.Appendf(nil, "note-%011d-of-%012d", call, caller) }

// prepare makes the caller's request of a kind.
func (c *caller) prepare(k kind) {
	const id, token = "@@@@@@@@@@", "$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$"
	args := `{"message":"` + token + `"}`
	if k.size > tokenBytes {
		args = `{"seed":"` + token + `","size":` + strconv.Itoa(k.size) + `}`
	}
	body := `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + c.tool(k) + `","arguments":` + args + `}}`
	r := request{kind: k, bytes: append(c.head("POST", len(body)), body...)}
	at := bytes.Index(r.bytes, []byte(id))
	r.id = [2]int{at, at + len(id)}
	at = bytes.Index(r.bytes, []byte(token))
	r.token = [2]int{at, at + tokenBytes}
	r.want = []byte(token)
	if k.size > tokenBytes {
		r.want = []byte(token + fill(k.size-tokenBytes))
	}
	c.asked = r
}

// call does the prepared call once and says how long the answer took to arrive, whole. An error means that there was no
// answer or a wrong one.
func (c *caller) call() (time.Duration, error) {
	r := &c.asked
	id := c.id()
	strconv.AppendUint(r.bytes[:r.id[0]], id, 10)
	copy(r.bytes[r.token[0]:r.token[1]], text(c.number, id))
	copy(r.want, r.bytes[r.token[0]:r.token[1]])
	begin := time.Now()
	got, err := c.exchange(r.bytes, r.bytes[r.id[0]-len(`"id":`):r.id[1]])
	if err != nil {
		return 0, err
	}
	if got.status != 200 {
		return 0, fmt.Errorf("status %d: %.300q", got.status, c.body)
	}
	if fault := r.judge(got.message, r.want); fault != "" {
		return 0, fmt.Errorf("%s: %.600q", fault, got.message)
	}
	return got.at.Sub(begin), nil
}

// fill is what the text of a blob has behind its seed.
func fill(n int) string {
	const pattern = "abcdefghijklmnopqrstuvwxyz0123456789 ABCDEFGHIJKLMNOPQRSTUVWXYZ."
	return strings.Repeat(pattern, n/len(pattern)+1)[:n]
}
