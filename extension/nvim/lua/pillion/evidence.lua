-- Renders the evidence of a proposal besides its problems: commands that were run on it, uses of what it changes,
-- claims of the agent, and hunks that are one decision.
local paths = require("pillion.paths")

local M = {}

local function plural(n, noun)
  return n .. " " .. noun .. (n == 1 and "" or "s")
end

-- Reports whether a result is that of a package or file that failed as a whole, so that nothing is known of its tests.
local function is_whole(t)
  return t.name == "(package)" or t.name == "(file)"
end

-- Renders one command with its tests; failed tests are named. An unknown status counts as not run.
local function check(out, c)
  local failed, old, whole, tests = 0, 0, 0, 0
  for _, t in ipairs(c.tests or {}) do
    local w = is_whole(t)
    tests = tests + (w and 0 or 1)
    if t.status == "failed" then
      whole = whole + (w and 1 or 0)
      failed = failed + 1
      old = old + (t.before == "failed" and 1 or 0)
    end
  end
  local known = c.status == "passed" or c.status == "failed"
  local words = (known and (c.status == "passed" and "passed: " or "FAILED: ") or "not run: ") .. c.command
  local more = {}
  if c.tests and #c.tests > 0 then
    local what = {}
    if failed > whole or failed == 0 then
      what[1] = failed > 0 and ("%d of %s failed"):format(failed - whole, plural(tests, "test")) or plural(tests, "test")
    end
    if whole > 0 then
      what[#what + 1] = plural(whole, "suite") .. " failed as a whole"
    end
    more[1] = table.concat(what, ", ") .. (old > 0 and (", %d before the change too"):format(old) or "")
  end
  more[#more + 1] = c.reason
  more[#more + 1] = c.stale and "before the last change" or nil
  if #more > 0 then
    words = words .. " (" .. table.concat(more, ", ") .. ")"
  end
  local bad = c.status == "failed" and c.before ~= "failed" and (failed == 0 or old < failed)
  out[#out + 1] = { words, bad and "PillionError" or (known and not c.stale and failed == 0) and "PillionInfo" or "PillionHint" }
  local shown = 0
  for _, t in ipairs(c.tests or {}) do
    if t.status == "failed" then
      shown = shown + 1
      if shown > 5 then
        out[#out + 1] = { "  … " .. (failed - 5) .. " more", "PillionError" }
        break
      end
      local name = is_whole(t) and t.suite or (t.name .. (t.suite and " (" .. t.suite .. ")" or ""))
      out[#out + 1] = { "  " .. name .. (t.before == "failed" and ", failed before too" or ""), "PillionError" }
    end
  end
end

-- Renders a changed declaration. Its uses may be affected; that does not mean that they break.
-- place is shown where several declarations have the name.
local function use(out, u, cwd, place)
  local what = u.what == "removed" and "is removed or renamed" or u.what == "signature" and "is declared differently" or "changed inside"
  local words = ("%s%s %s%s %s: "):format(u.public and "public " or "", u.kind, u.name, place and (" (%s:%d)"):format(paths.short(u.path, cwd), u.line) or "", what)
  if not u.unknown and u.uses == 0 then
    words = words .. "no other use is known in this project"
  elseif u.unknown then
    words = words .. "its uses are not known (" .. u.unknown .. ")"
  else
    words = words .. ("%s in %s, %d of them in this proposal"):format(plural(u.uses, "use"), plural(u.files, "file"), u.inside)
    local first = (u.others or {})[1]
    if u.uses > u.inside then
      words = words .. ("; %d outside may be affected%s"):format(u.uses - u.inside, first and (" (%s:%d …)"):format(paths.short(first.path, cwd), first.line) or "")
    end
  end
  out[#out + 1] = { words, u.what ~= "body" and u.uses > u.inside and "PillionHint" or nil }
end

local supports = {
  run = "`%s` ended with 0 on this version",
  stale = "`%s` ran on an earlier version",
  failed = "NOT SO, `%s` did not end with 0",
}

-- Returns the lines, each with its highlight group.
---@param e? pillion.ChangeEvidence
---@param cwd string
---@return {[1]: string, [2]: string?}[]
function M.lines(e, cwd)
  local out = {}
  if not e then
    return out
  end
  for _, c in ipairs(e.checks or {}) do
    check(out, c)
  end
  local same = {}
  for _, u in ipairs(e.uses or {}) do
    same[u.kind .. u.name] = (same[u.kind .. u.name] or 0) + 1
  end
  for i, u in ipairs(e.uses or {}) do
    if i > 8 then
      out[#out + 1] = { "… and " .. plural(#e.uses - 8, "more changed declaration") }
      break
    end
    use(out, u, cwd, same[u.kind .. u.name] > 1)
  end
  for _, g in ipairs(e.groups or {}) do
    out[#out + 1] = { g.title, g.verified and "PillionInfo" or nil }
  end
  for _, c in ipairs(e.claims or {}) do
    out[#out + 1] = { ("the agent says “%s”, %s: "):format(c.text, c.subject or c.about) .. (supports[c.support] and supports[c.support]:format(c.command or "") or c.command and ("not known, `%s` failed and checks other things too"):format(c.command) or "no run of that is known"), c.support == "failed" and "PillionError" or c.support == "run" and "PillionInfo" or "PillionHint" }
  end
  for _, path in ipairs(e.merged or {}) do
    out[#out + 1] = { paths.short(path, cwd) .. " has changed since the agent read it; the change is to the file as it is now" }
  end
  if (e.attempts or 0) > 0 then
    out[#out + 1] = { plural(e.attempts, "earlier attempt") .. " went back to the agent" }
  end
  if e.insists then
    out[#out + 1] = { "the agent was told of the errors and proposes this all the same: “" .. e.insists .. "”", "PillionHint" }
  end
  for _, l in ipairs(out) do
    l[1] = l[1]:gsub("[%c]", " ") -- names of tests and texts of the agent are not trusted
  end
  return out
end

-- Returns the group with which a hunk is decided; nil if the hunk is decided alone.
---@param e? pillion.ChangeEvidence
---@param id string
---@return pillion.EvidenceGroup?
function M.group(e, id)
  for _, g in ipairs(e and e.groups or {}) do
    if vim.tbl_contains(g.hunks, id) then
      return g
    end
  end
end

return M
