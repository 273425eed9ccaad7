// Package pressure tells how the machine is doing: one sampler, many readers.
//
// A [Sampler] looks every 100 ms at what the process may use and what it uses: CPU against the tightest quota of its cgroups
// (v1, v2 and hybrid) or against its CPUs, memory against the tightest limit, and the goroutines that wait for a CPU. Beside
// these it shows the host's CPU and load, a load average of the process's own goroutines, the kernel's pressure stall
// information, scheduling latency and the share of the garbage collector. Each [Reading] has a value, an age and a state:
// what cannot be read is [Unknown] and never 0.
//
//	s, err := pressure.New(pressure.Config{})
//	if err != nil { ... }
//	s.Start()
//	defer s.Close()
//
//	if !s.Normal() {
//		log.Print(s.Why()) // "cpu 97 % of quota, limit 95 %"
//	}
//
// Reading takes no lock and allocates nothing; Normal costs about as much as reading the clock. Under overload the sampler starves
// with everybody else, so a sample that is older than three periods counts as overload, judged when somebody asks.
//
// Do not use it to refuse calls by itself: that the CPU is full does not say that it is too full. It answers whether there is
// room for more, which is what a bound that wants to grow has to ask. Do not use it as a monitoring agent either; it
// sees one process.
package pressure
