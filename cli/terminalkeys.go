package cli

import (
	"bytes"
	"io"
	"sync"
)

// Keys of a terminal in raw mode.
const (
	interrupt = 0x03
	// toEnd, erase and enter leave an empty line in place of the one that was written.
	clearLine = "\x05\x15\r"
)

// keyReader reads a terminal all the time, so that Ctrl+C is heard while a statement is carried out. It ends that
// statement then; otherwise it empties the line. What is typed meanwhile is read later.
type keyReader struct {
	mu     sync.Mutex
	more   *sync.Cond
	typed  []byte
	err    error
	cancel func()
	// emptied says that a line was given up.
	emptied bool
}

func readKeys(from io.Reader) *keyReader {
	k := &keyReader{}
	k.more = sync.NewCond(&k.mu)
	go func() {
		buffer := make([]byte, 1024)
		for {
			n, err := from.Read(buffer)
			k.readLoop(buffer[:n], err)
			if err != nil {
				return
			}
		}
	}()
	return k
}

func (k *keyReader) readLoop(text []byte, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(text) > 0 {
		i := bytes.IndexByte(text, interrupt)
		if i < 0 {
			k.typed = append(k.typed, text...)
			break
		}
		if k.cancel != nil {
			k.typed = nil // what was typed ahead belonged to it
			k.cancel()
		} else {
			k.typed = append(append(k.typed, text[:i]...), clearLine...)
			k.emptied = true
		}
		text = text[i+1:]
	}
	k.err = err
	k.more.Broadcast()
}

// Read implements io.Reader.
func (k *keyReader) Read(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.typed) == 0 && k.err == nil {
		k.more.Wait()
	}
	if len(k.typed) == 0 {
		return 0, k.err
	}
	n := copy(p, k.typed)
	k.typed = k.typed[n:]
	return n, nil
}

// setInterrupt says what Ctrl+C ends; nil is the line.
func (k *keyReader) setInterrupt(cancel func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancel = cancel
}

// gaveUp reports whether a line was given up since it was last asked.
func (k *keyReader) gaveUp() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.emptied
	k.emptied = false
	return was
}
