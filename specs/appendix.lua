-- The paper's Appendix, "TSPOW is a special case of FPA", spelled as it stands there.
--
-- Head h of the paper (here: a term, since they are summed) has an anchor block S_h and two
-- branches: W1 selects the anchor; W2 keeps the anchor as it is, multiplies what comes after it
-- by sqrt(2), and drops what comes before. sqrt2 is the exact number: its square, 2, is what
-- enters the kernel. Nothing here mentions symmetric features; the compiler finds them.

-- "Degree-2 TSPOW, block size b = 2."
local function blocks_of_two(d)
  local terms = {}
  for h = 0, d // 2 - 1 do
    local anchor = range(2*h + 1, 2*h + 2)
    local rest   = range(2*h + 3, d)
    terms[#terms + 1] = term { select(anchor), diagonal { [anchor] = 1, [rest] = sqrt2 } }
  end
  return terms
end

-- "General degree-2 TSPOW, arbitrary block size b": m = ceil(d / b) blocks, the last may be short.
local function blocks_of(b, d)
  local terms = {}
  for h = 0, math.ceil(d / b) - 1 do
    local last   = math.min((h + 1) * b, d)
    local anchor = range(h*b + 1, last)
    local rest   = range(last + 1, d)
    terms[#terms + 1] = term { select(anchor), diagonal { [anchor] = 1, [rest] = sqrt2 } }
  end
  return terms
end

return
  head { name = "appendix_d64_b2", d = 64, dv = 64, terms = blocks_of_two(64) },
  head { name = "appendix_d64_b8", d = 64, dv = 64, terms = blocks_of(8, 64) },
  head { name = "appendix_d20_b6", d = 20, dv = 24, terms = blocks_of(6, 20) }
