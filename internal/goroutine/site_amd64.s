#include "textflag.h"

// func Here() Site
// Each frame pointer points to the caller's, and above that lies the address to return to. The first one here is that of the
// function that calls this one, as this one has no frame; a goroutine's outermost is 0.
TEXT ·Here(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ 8(BP), AX
	MOVQ AX, ret_PC+0(FP)
	MOVQ (BP), CX
	MOVQ 8(CX), AX
	MOVQ AX, ret_Outer+8(FP)
	MOVQ (CX), CX
	XORL AX, AX
	TESTQ CX, CX
	JZ outermost
	MOVQ 8(CX), AX
outermost:
	MOVQ AX, ret_Beyond+16(FP)
	RET
