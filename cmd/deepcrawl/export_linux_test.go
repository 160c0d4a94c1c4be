package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestExportIntoAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() {
		text, err := os.ReadFile(pipe)
		got <- fmt.Sprint(string(text), err)
	}()
	f, err := newFile(pipe)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("rows"); err != nil {
		t.Fatal(err)
	}
	if err := f.commit(pipe); err != nil {
		t.Fatal(err)
	}
	f.discard()
	if text := <-got; text != "rows<nil>" {
		t.Errorf("the reader got %s", text)
	}
	if fi, err := os.Stat(pipe); err != nil || fi.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("got %v, %v, want a pipe still", fi, err)
	}
}
