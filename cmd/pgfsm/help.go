package main

import _ "embed"

// helpText has the help of every command: a heading with the command's path, a one-line summary, the description, and examples in a fence.
//
//go:embed help.md
var helpText string
