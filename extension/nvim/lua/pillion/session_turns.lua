-- The requests of a session: opening it, prompts and their end, settings, other methods. Adds to the class.
local compat = require("pillion.compat")
local config = require("pillion.config")
local log = require("pillion.log")
local process = require("pillion.process")

---@param Session pillion.Session
return function(Session)
  ---@return boolean
  function Session:busy()
    return self.running > 0 or self.elsewhere == true
  end

  -- Uses the sidecar's answer to the request that opened the session.
  ---@param r table its configOptions
  function Session:take_settings(r)
    self.options = r.configOptions or {}
    self.state = "ready"
    local review = self:option("review")
    local style = config.options.follow and "follow" or config.options.draft and "draft" or nil
    if style and review and review.currentValue ~= style then
      self:set_option("review", style)
    end
    self:status()
  end

  local function with_settings(params)
    local meta = { trusted = config.options.trust, model = config.options.model, agent = config.options.mode }
    if next(meta) then
      params._meta = { pillion = meta }
    end
    return params
  end

  -- Creates the session in the sidecar, if it does not exist there.
  ---@param callback fun(err?: string)
  function Session:open(callback)
    if self.state == "ready" and process.state == "ready" then
      return callback()
    end
    self.opening = self.opening or {}
    table.insert(self.opening, callback)
    if #self.opening > 1 then
      return
    end
    local function settle(err)
      local waiting = self.opening
      self.opening = nil
      for _, f in ipairs(waiting or {}) do
        f(err)
      end
    end
    process.start(function(failed)
      if failed then
        return settle(failed)
      end
      require("pillion.selection").follow()
      local function answered(err, r)
        if err then
          return settle(err.message)
        end
        if r.sessionId then
          self.id = r.sessionId
          require("pillion.session").by_id[self.id] = self
        end
        self:take_settings(r)
        compat.user_event("PillionSession", { session = self.id })
        settle()
      end
      if self.id then
        local method = self.replay and "session/load" or "session/resume"
        self.replay = nil
        process.request(method, with_settings({ sessionId = self.id, cwd = self.cwd, mcpServers = {} }), answered)
      else
        -- Updates may arrive before the answer, when this client does not know the id yet: an update with an unknown id
        -- belongs to this session.
        process.request("session/new", with_settings({ cwd = self.cwd, mcpServers = {} }), answered)
      end
    end)
  end

  -- Called when a turn has ended.
  ---@param err? string
  function Session:ended(err)
    for _, e in ipairs(self.entries) do
      e.closed = true
    end
    require("pillion.follow").turn_ended(self, err)
    require("pillion.session").check_disk()
    self:status()
    compat.user_event("PillionTurnEnd", { session = self.id, error = err })
  end

  -- Sends a prompt. While a turn runs, the sidecar queues it.
  ---@param blocks table[] ACP content
  ---@param shown string what the conversation shows
  ---@param done? fun(err?: string, stop?: string)
  function Session:prompt(blocks, shown, done)
    self:open(function(failed)
      if failed then
        log.tell("error", failed)
        return done and done(failed)
      end
      local last = self.entries[#self.entries]
      if last then
        last.closed = true
      end
      if self.plan and self.running == 0 then
        self.plan.closed = true
      end
      local entry = self:add({ kind = "user", text = shown, waiting = self.running > 0 or nil, closed = true })
      self.running = self.running + 1
      compat.user_event("PillionTurnStart", { session = self.id })
      entry.request = process.rpc:request("session/prompt", { sessionId = self.id, prompt = blocks }, function(err, r)
        self.running = math.max(0, self.running - 1)
        entry.request = nil
        if not self.turn or not entry.message or self.turn == entry.message then
          self.elsewhere = false -- the notification that it is over may arrive after the answer
        end
        if err then
          self:note("error", err.message)
        elseif r.stopReason == "cancelled" then
          self:note("info", "Stopped.")
        elseif r.stopReason ~= "end_turn" then
          self:note("warning", "Ended: " .. tostring(r.stopReason):gsub("_", " ") .. ".")
        end
        if entry.waiting then -- it was cancelled before its turn began
          entry.waiting = nil
          self:tell("changed", entry)
        end
        self:ended(err and err.message)
        if done then
          done(err and err.message, r and r.stopReason)
        end
      end)
      self:status()
    end)
  end

  -- Stops the running turn.
  function Session:cancel()
    if self.id then
      process.notify("session/cancel", { sessionId = self.id })
    end
  end

  -- Calls a method for this session; reports if the sidecar is too old for it.
  ---@param method string
  ---@param params table
  ---@param callback pillion.Callback
  function Session:call(method, params, callback)
    self:open(function(failed)
      if failed then
        return callback({ code = -32000, message = failed })
      end
      if method:sub(1, 1) == "_" and not process.can(method) then
        return callback({ code = -32601, message = "this sidecar cannot do that yet (" .. method .. "); update pillion" })
      end
      params.sessionId = self.id
      process.request(method, params, callback)
    end)
  end

  ---@param id string
  ---@param value string
  function Session:set_option(id, value)
    self:call("session/set_config_option", { configId = id, value = value }, function(err, r)
      if err then
        return log.tell("error", err.message)
      end
      self.options = r.configOptions or self.options
      self:status()
    end)
  end
end
