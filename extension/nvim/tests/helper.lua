-- The real sidecar in a world of its own for every test: folders, a scripted model, a fresh plugin.
local M = { tests = {}, root = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h") }

M.repo = vim.fn.fnamemodify(M.root, ":h:h")
M.binary = vim.env.PILLION_BIN or (M.repo .. "/bin/pillion")

-- Every call of a public function is held to its annotations, where there is a Lua parser to read them.
if vim.fn.has("nvim-0.10") == 1 then
  dofile(M.root .. "/tests/annotations.lua").enforce()
end

function M.test(name, f)
  table.insert(M.tests, { name = name, f = f })
end

function M.eq(want, got, what)
  if not vim.deep_equal(want, got) then
    error((what and what .. ": " or "") .. "want " .. vim.inspect(want) .. "\ngot  " .. vim.inspect(got), 2)
  end
end

function M.ok(value, what)
  if not value then
    error(what or "not true", 2)
  end
  return value
end

function M.match(pattern, text)
  if not tostring(text):find(pattern) then
    error(("want something like %q in\n%s"):format(pattern, tostring(text)), 2)
  end
end

-- Waits for a condition while events are worked on.
function M.wait(what, f, limit)
  local value
  local done = vim.wait(limit or 60000, function()
    value = f()
    return value and true or false
  end, 5)
  if not done then
    local log = package.loaded["pillion.log"]
    error(("waited in vain for %s\n%s"):format(what, log and table.concat(log.lines(), "\n") or ""), 2)
  end
  return value
end

-- Forgets the plugin and everything that is open.
function M.reset()
  local process = package.loaded["pillion.process"]
  if process and process.rpc then
    process.stop(3000)
  end
  pcall(vim.cmd, "stopinsert")
  for _, job in ipairs(M.jobs or {}) do
    pcall(vim.fn.chanclose, job, "stdin")
    pcall(vim.fn.jobstop, job)
  end
  M.jobs = {}
  for name in pairs(package.loaded) do
    if name:match("^pillion") then
      package.loaded[name] = nil
    end
  end
  for _, g in ipairs({ "pillion_buffers", "pillion_diagnostics", "pillion_selection", "pillion_review", "pillion_follow", "pillion_highlights" }) do
    pcall(vim.api.nvim_del_augroup_by_name, g)
  end
  vim.cmd("silent! tabonly! | silent! only! | silent! %bwipeout!")
  vim.fn.setqflist({}, "f")
  vim.o.columns, vim.o.lines = 140, 40
  vim.diagnostic.reset()
  vim.g.loaded_pillion = nil
  vim.cmd("runtime! plugin/pillion.lua")
  if M.home then
    vim.fn.delete(M.home, "rf")
    M.home = nil
  end
  vim.cmd("cd " .. vim.fn.fnameescape(M.repo))
end

function M.write(path, text)
  vim.fn.mkdir(vim.fn.fnamemodify(path, ":h"), "p")
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
end

function M.read(path)
  local f = io.open(path, "rb")
  local s = f and f:read("*a")
  if f then
    f:close()
  end
  return s
end

-- A project, a model that answers with steps, and options that lead there.
function M.world(steps, files, options)
  local home = vim.fn.tempname()
  vim.fn.mkdir(home .. "/project", "p")
  home = vim.loop.fs_realpath(home)
  M.home = home
  local w = { home = home, project = home .. "/project", told = {} }
  for name, text in pairs(files or {}) do
    M.write(w.project .. "/" .. name, text)
  end
  -- A change with errors is asked about at once: the scripted models do not propose it a second time.
  M.write(home .. "/config/pillion/pillion.jsonc", [[{"repair_rounds":0}]])
  local env = {
    HOME = home,
    XDG_STATE_HOME = home .. "/state",
    XDG_CONFIG_HOME = home .. "/config",
    XDG_CACHE_HOME = home .. "/cache",
  }
  if steps then
    local said
    M.write(home .. "/steps.json", vim.json.encode(steps))
    local job = vim.fn.jobstart({ "node", M.root .. "/tests/model.mjs", home .. "/steps.json" }, {
      on_stdout = function(_, data)
        said = said or (data[1] ~= "" and vim.json.decode(data[1]))
      end,
    })
    table.insert(M.jobs, job)
    M.wait("the model", function()
      return said
    end)
    w.model = said
    env.OPENAI_BASE_URL, env.OPENAI_API_KEY, env.OPENAI_MODEL, env.PILLION_MODEL = said.url, "test", "scripted", "openai/scripted"
  else
    env.PILLION_MODEL = "builtin/quickfix"
    env.GOFLAGS, env.GOCACHE, env.GOMODCACHE = "-mod=mod", vim.env.PILLION_TEST_GOCACHE or vim.fn.expand("~/.cache/go-build"), vim.fn.trim(vim.fn.system({ "go", "env", "GOMODCACHE" }))
  end
  vim.cmd("cd " .. vim.fn.fnameescape(w.project))
  vim.notify = function(text, level)
    table.insert(w.told, { text = text, level = level })
  end
  options = vim.tbl_deep_extend("force", { cmd = M.binary, env = env }, options or {})
  require("pillion").setup(options)
  require("pillion.review_keys").grace = 0 -- tests press keys at once; one test is about the grace itself
  return w
end

function M.seen(w)
  return vim.json.decode(vim.fn.system({ "node", "-e", "fetch(process.argv[1]).then(r=>r.text()).then(t=>process.stdout.write(t))", w.model.seen }))
end

function M.session()
  return require("pillion.session").current
end

function M.idle(what)
  M.wait(what or "the end of the turn", function()
    local s = M.session()
    return s and s.state == "ready" and not s:busy()
  end)
end

function M.chat_text()
  local v = M.session() and M.session().view
  if not v then
    return ""
  end
  repeat
    v:flush()
  until not next(v.dirty)
  return table.concat(vim.api.nvim_buf_get_lines(v.buf, 0, -1, false), "\n")
end

-- The proposal that waits.
function M.review()
  return M.wait("a proposal", function()
    return require("pillion.review").open[1]
  end)
end

function M.ask()
  return M.wait("a question", function()
    return require("pillion.approval").open[1]
  end)
end

function M.lines(buf)
  return vim.api.nvim_buf_get_lines(buf or 0, 0, -1, false)
end

-- Picks from vim.ui.select by what the item reads, in turn.
function M.select(...)
  local wanted = { ... }
  local shown = {}
  vim.ui.select = function(items, opts, done)
    local want = table.remove(wanted, 1)
    for _, item in ipairs(items) do
      local text = opts.format_item and opts.format_item(item) or tostring(item)
      shown[#shown + 1] = text
      if want and text:find(want, 1, true) then
        return done(item)
      end
    end
    done(nil)
  end
  return shown
end

function M.run()
  local failed, begun = 0, vim.loop.hrtime()
  local only = vim.env.ONLY
  vim.o.swapfile = false
  for _, t in ipairs(M.tests) do
    if not only or t.name:find(only, 1, true) then
      local at = vim.loop.hrtime()
      M.reset()
      local ok, err = xpcall(t.f, debug.traceback)
      local ms = (vim.loop.hrtime() - at) / 1e6
      io.stdout:write(("%s %s (%d ms)\n"):format(ok and "ok  " or "FAIL", t.name, ms))
      if not ok then
        failed = failed + 1
        io.stdout:write("     " .. tostring(err):gsub("\n", "\n     ") .. "\n")
      end
    end
  end
  M.reset()
  io.stdout:write(("%d tests, %d failed, %.1f s\n"):format(#M.tests, failed, (vim.loop.hrtime() - begun) / 1e9))
  vim.cmd(failed > 0 and "cquit 1" or "qall!")
end

return M
