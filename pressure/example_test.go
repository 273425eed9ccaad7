package pressure_test

import (
	"fmt"

	"github.com/spillway-go/spillway/pressure"
)

func Example() {
	// A test's own machine; leave Source out for the real one.
	machine := pressure.NewManual()
	s, err := pressure.New(pressure.Config{
		Limits: pressure.Limits{CPU: 80},
		Source: machine,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	machine.Put(pressure.CPU, pressure.Reading{State: pressure.Known, Value: 83, Of: "quota"})
	s.Start()
	defer s.Close()

	fmt.Println(s.Normal(), s.CPUTight(), s.MemoryTight())
	fmt.Println(s.Why())
	// Output:
	// false true false
	// cpu 83 % of quota, limit 80 %
}
