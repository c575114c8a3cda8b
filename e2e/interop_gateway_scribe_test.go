package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// scribe runs an MCP server on standard input and output and writes every line that is sent to the server into a file,
// before the server gets it. Its arguments are the file, the command and what goes with it. So it is known what reached a
// server that others wrote, whatever the gateway and its ledger say.
func scribe() {
	if err := scribes(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func scribes(path, command string, args []string) error {
	// Several servers may have the same scribe's file: each line is one write behind the end.
	journal, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer journal.Close()
	server := exec.Command(command, args...)
	server.Stdout, server.Stderr = os.Stdout, os.Stderr
	to, err := server.StdinPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	from := bufio.NewReader(os.Stdin)
	for {
		line, err := from.ReadBytes('\n')
		if len(line) > 0 {
			if _, err := journal.Write(line); err != nil {
				return err
			}
			if _, err := to.Write(line); err != nil {
				break // the server has ended: what it ends with is what counts
			}
		}
		if err == io.EOF {
			break
		} else if err != nil {
			return err
		}
	}
	to.Close()
	return server.Wait()
}
