//go:build !unix

package main

func privately() {}
