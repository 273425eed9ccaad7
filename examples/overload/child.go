package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"time"
)

// The parent talks to its children in lines of JSON: one Order on standard
// input, one answer on standard output. A child ends when its standard input
// ends, which the operating system sees to even when the parent is killed.

// Order is what the parent wants of a child; a child looks at its own fields.
type Order struct {
	Serve     *Serve     `json:"serve,omitempty"`     // first order: listen, say where
	Mark      bool       `json:"mark,omitempty"`      // service: say your Status, then count it anew
	Tell      string     `json:"tell,omitempty"`      // service: play this act of the story
	Behaviour *Behaviour `json:"behaviour,omitempty"` // dependency: behave like this from now on
}

// Serve is what a service needs to know to begin; a dependency needs nothing.
type Serve struct {
	Side       Side   `json:"side,omitempty"`
	Dependency string `json:"dependency,omitempty"` // its host:port
}

// Answer is what a child says.
type Answer struct {
	Address string `json:"address,omitempty"`
	Status  Status `json:"status,omitzero"`
	Story   *Story `json:"story,omitempty"`
	Error   string `json:"error,omitempty"`
}

// beChild is the main function of a child: it starts the role's server, then
// does what the parent says until the parent is gone.
func beChild(role string, in io.Reader, out io.Writer) error {
	// Ctrl-C in a terminal reaches every process of the group. The parent
	// hears it too and closes our input once it is done with us.
	signal.Ignore(os.Interrupt)
	var obey func(Order) Answer
	switch role {
	case "dependency":
		obey = newDependency().obey
	case "service":
		obey = new(service).obey
	default:
		return fmt.Errorf("role %q: must be dependency or service", role)
	}
	follow(in, out, obey)
	return nil
}

// follow obeys until the parent is done, or gone.
func follow(in io.Reader, out io.Writer, obey func(Order) Answer) {
	orders, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var order Order
		if err := orders.Decode(&order); err != nil {
			return
		}
		if err := answers.Encode(obey(order)); err != nil {
			return
		}
	}
}

// child is the parent's view of one child process.
type child struct {
	role string
	cmd  *exec.Cmd
	in   io.WriteCloser

	mu      sync.Mutex // one order and its answer at a time
	orders  *json.Encoder
	answers *json.Decoder
}

// startChild runs this program once more in another role. The child is to be
// stopped by stop.
func startChild(exe, role string) (*child, error) {
	cmd := exec.Command(exe, "role="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the %s: %w", role, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the %s: %w", role, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the %s: %w", role, err)
	}
	return &child{role: role, cmd: cmd, in: in, orders: json.NewEncoder(in), answers: json.NewDecoder(out)}, nil
}

// ask sends one order and waits for its answer.
func (c *child) ask(order Order) (Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var answer Answer
	err := c.orders.Encode(order)
	if err == nil {
		err = c.answers.Decode(&answer)
	}
	if err == nil && answer.Error != "" {
		err = errors.New(answer.Error)
	}
	if err != nil {
		return answer, fmt.Errorf("asking the %s: %w", c.role, err)
	}
	return answer, nil
}

// stop ends the child: gently, and by force if it does not follow.
func (c *child) stop() {
	_ = c.in.Close() // already closed is as good
	force := time.AfterFunc(2*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer force.Stop()
	_ = c.cmd.Wait() // how it ended is of no interest any more
}
