package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
)

// client sends the same request over a few connections that it keeps. It reads no more of HTTP than it must, so that
// the processors are left to the server.
type client struct {
	conns []net.Conn
	in    []*bufio.Reader
}

func dial(addr string, conns int) (*client, error) {
	c := &client{}
	for range conns {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			c.close()
			return nil, err
		}
		c.conns = append(c.conns, conn)
		c.in = append(c.in, bufio.NewReader(conn))
	}
	return c, nil
}

func (c *client) close() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// requests sends n requests, shared among the connections, each with one in flight.
func (c *client) requests(n int) error {
	var wg sync.WaitGroup
	errs := make([]error, len(c.conns))
	for i := range c.conns {
		share := n / len(c.conns)
		if i < n%len(c.conns) {
			share++
		}
		wg.Go(func() {
			for range share {
				if errs[i] = exchange(c.conns[i], c.in[i]); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

var helloRequest = []byte("GET /hello HTTP/1.1\r\nHost: example.org\r\n\r\n")

// exchange sends one request and reads its answer, which must be the greeting.
func exchange(conn net.Conn, in *bufio.Reader) error {
	if _, err := conn.Write(helloRequest); err != nil {
		return err
	}
	status, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(status, "HTTP/1.1 200 ") {
		return fmt.Errorf("the server answered %q, want 200", strings.TrimSpace(status))
	}
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= len("\r\n") {
			break
		}
	}
	body, err := in.Peek(len(hello))
	if err != nil {
		return err
	}
	if string(body) != hello {
		return fmt.Errorf("the server answered with %q, want %q", body, hello)
	}
	_, err = in.Discard(len(hello))
	return err
}
