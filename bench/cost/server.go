package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/bench/internal/paired"
	"github.com/spillway-go/spillway/guard"
)

// serverRole is the environment variable that makes this program the server of -http, in a process of its own, so that
// the CPU time of the client is not in its account.
const serverRole = "SPILLWAY_BENCH_SERVER"

// serverInstances is how many servers of each kind there are, as paired.Side advises.
const serverInstances = 4

// serve runs servers on ports of the loopback interface: unguarded ones, guarded ones and again unguarded ones. It writes
// their addresses on one line, in turn one of each kind; then each line read is answered with the CPU time used so far, in nanoseconds. The end of the
// input, and so of the parent, ends it.
func serve(in io.Reader, out io.Writer) {
	if err := serveUntilEnd(in, out); err != nil {
		fmt.Fprintln(os.Stderr, "cost: server:", err)
		os.Exit(1)
	}
}

func serveUntilEnd(in io.Reader, out io.Writer) (err error) {
	rt, err := guard.NewRuntime(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	var addrs []string
	var servers []*http.Server
	defer func() {
		for _, srv := range servers {
			err = errors.Join(err, srv.Close())
		}
	}()
	for i, rt := range slices.Repeat([]*guard.Runtime{nil, rt, nil}, serverInstances) {
		mux, err := helloMux(rt, fmt.Sprintf("http%d:", i))
		if err != nil {
			return err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		srv := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
		servers = append(servers, srv)
		go func() { _ = srv.Serve(l) }() // returns when srv is closed
		addrs = append(addrs, l.Addr().String())
	}
	if _, err := fmt.Fprintln(out, strings.Join(addrs, " ")); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		used, err := cpuTime()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, used.Nanoseconds()); err != nil {
			return err
		}
	}
	return nil
}

// process is the parent's side of the server.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	addrs []string
}

func startServer() (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), serverRole+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, in: in, out: bufio.NewReader(out)}
	line, err := p.out.ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the server did not start: %w", err), p.stop())
	}
	p.addrs = strings.Fields(line)
	return p, nil
}

func (p *process) stop() error {
	_ = p.in.Close()
	return p.cmd.Wait()
}

// cpu asks for the CPU time the server has used so far.
func (p *process) cpu() (time.Duration, error) {
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		return 0, err
	}
	var ns int64
	if _, err := fmt.Fscanln(p.out, &ns); err != nil {
		return 0, fmt.Errorf("the server no longer answers: %w", err)
	}
	return time.Duration(ns), nil
}

// cpuOf makes a Run whose time is the CPU time that the server spends on n requests.
func (p *process) cpuOf(requests func(n int) error) paired.Run {
	return func(n int) (time.Duration, error) {
		before, err := p.cpu()
		if err != nil {
			return 0, err
		}
		if err := requests(n); err != nil {
			return 0, err
		}
		after, err := p.cpu()
		return after - before, err
	}
}
