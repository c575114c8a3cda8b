package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
)

var (
	load    = flag.Bool("load", false, "measure; without it only the instrument is tested")
	program = flag.String("pgfsm", "", "the pgfsm that is measured, an absolute path; without it only what it is compared with")
	dir     = flag.String("dir", "", "a folder on the disk that ledgers are measured on, an absolute path; without it the system's for temporary files")
	budget  = flag.Duration("budget", 3*time.Minute, "no round begins that would end after its block's part of this time")
	lasts   = flag.Duration("turn", time.Second, "how long each turn of each variant takes")
	only    = flag.String("only", "", "measure only the variants whose name this pattern matches, beside direct calls")
	titles  = flag.String("block", "", "measure only the blocks whose title this pattern matches, as they are printed")
	rounds  = flag.Int("rounds", 6, "how many turns each variant has")
	stuck   = flag.Int("stuck", 100, "how many calls are under way when a replica is killed")
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleAs); role != "" {
		os.Exit(play(role))
	}
	os.Exit(m.Run())
}

// TestLoad measures and prints. It fails if an answer was missing or wrong, and never because of time.
func TestLoad(t *testing.T) {
	if !*load {
		t.Skip("it measures for minutes: make bench-gateway")
	}
	machine(t)
	w := newWorld(t)
	measure(t, *budget, w.headline())
	fmt.Println("\nratio and share: to the first line, of p50 and calls/s, median of the rounds; own: what the callers need themselves, " +
		"and all\nCPU, for each call; RSS: at the end of the block. Every answer was there and was right.")
}

// measure runs blocks within a time, of which each has the same part of what is left.
func measure(t *testing.T, within time.Duration, all []block) {
	t.Helper()
	pattern, title := regexp.MustCompile(*only), regexp.MustCompile(*titles)
	all = slices.DeleteFunc(all, func(b block) bool { return !title.MatchString(b.heading()) })
	end := time.Now().Add(within)
	for i, b := range all {
		b.turn, b.rounds = *lasts, *rounds
		if b.choose(pattern); len(b.variants) < 2 {
			continue
		}
		until := time.Now().Add(time.Until(end) / time.Duration(len(all)-i))
		s, err := b.run(until)
		check.NoError(t, err)
		b.print(os.Stdout, s)
	}
}

// machine prints what the figures depend on.
func machine(t *testing.T) {
	busy, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		busy = []byte("unknown")
	}
	fmt.Printf("%s %s/%s, %d cores, GOMAXPROCS %d, load before %s, flush of 4 KiB %v\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), runtime.GOMAXPROCS(0), strings.TrimSpace(string(busy)), flush(t))
}

// flush is the median time of writing 4 KiB to the end of a file and flushing it.
func flush(t *testing.T) time.Duration {
	t.Helper()
	folder, err := os.MkdirTemp(*dir, "bench-")
	check.NoError(t, err)
	defer os.RemoveAll(folder)
	f, err := os.Create(filepath.Join(folder, "flush"))
	check.NoError(t, err)
	defer f.Close()
	var took []float64
	for range 200 {
		begin := time.Now()
		if _, err = f.Write(make([]byte, 4096)); err == nil {
			err = f.Sync()
		}
		check.NoError(t, err)
		took = append(took, float64(time.Since(begin)))
	}
	return time.Duration(spanOf(took).median).Round(time.Microsecond)
}
