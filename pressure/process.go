package pressure

import "time"

// process knows the CPU time that this process used and the CPUs that it may run on.
type process struct {
	times func() (time.Duration, bool) // CPU time since the start; false where the platform does not tell
	cpus  func() int                   // as its affinity mask and cpuset allow
	used  ring                         // seconds
	may   float64

	ofCPUs float64
	of     string
}

func newProcess(period time.Duration) process {
	return process{times: cpuTime, cpus: allowedCPUs, used: newRing(cpuSpan, period)}
}
