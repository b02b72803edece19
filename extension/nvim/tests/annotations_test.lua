-- Every public function says what it takes and returns, and says it as it is.
local t = dofile(vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h") .. "/helper.lua")
local annotations = dofile(t.root .. "/tests/annotations.lua")
local test, eq = t.test, t.eq

if vim.fn.has("nvim-0.10") == 0 then
  io.stdout:write("skip: the Lua parser that reads the annotations comes with Neovim 0.10\n")
  vim.cmd("qall!")
end

test("every public function is annotated as it is declared", function()
  local faults, count = {}, 0
  for _, file in ipairs(annotations.files()) do
    for _, fn in ipairs(annotations.functions(file)) do
      count = count + 1
      local fault = annotations.fault(fn)
      if fault then
        faults[#faults + 1] = ("%s:%d: %s %s"):format(vim.fn.fnamemodify(fn.file, ":t"), fn.line, fn.name, fault)
      end
    end
  end
  t.ok(count > 150, "only " .. count .. " functions were found")
  if #faults > 0 then
    error(table.concat(faults, "\n"), 0)
  end
end)

test("requiring a module registers nothing", function()
  local function registered()
    local marks = {}
    for _, a in ipairs(vim.api.nvim_get_autocmds({})) do
      marks[#marks + 1] = ("%s %s"):format(a.event, a.group_name or a.desc or "")
    end
    for name in pairs(vim.api.nvim_get_commands({})) do
      marks[#marks + 1] = ":" .. name
    end
    for _, m in ipairs(vim.api.nvim_get_keymap("n")) do
      marks[#marks + 1] = m.lhs
    end
    table.sort(marks)
    return marks
  end
  local before = registered()
  for _, file in ipairs(annotations.files()) do
    require("pillion." .. vim.fn.fnamemodify(file, ":t:r"))
  end
  eq(before, registered())
  eq("stopped", require("pillion.process").state)
end)

test("values are held to what annotations say", function()
  local fits = annotations.fits
  for _, x in ipairs({ { 1, "integer" }, { 1.5, "number" }, { nil, "string?" }, { "a", '"a"|"b"' }, { {}, "string[]" }, { {}, "pillion.Session" }, { print, "fun(x: string): boolean" }, { {}, "{path: string, line?: integer}[]" }, { {}, "table<string, integer>" }, { "x", "string|string[]" } }) do
    eq({ true, x[2] }, { fits(x[1], x[2]), x[2] })
  end
  for _, x in ipairs({ { "1", "integer" }, { 1.5, "integer" }, { nil, "string" }, { "c", '"a"|"b"' }, { "x", "string[]" }, { 1, "pillion.Session" }, { 1, "fun(x: string): boolean" }, { true, "string|string[]" } }) do
    eq({ false, x[2] }, { fits(x[1], x[2]), x[2] })
  end
end)

t.run()
