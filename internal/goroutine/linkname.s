// This file lets the compiler accept functions without a body: those that labels.go takes from the runtime.
